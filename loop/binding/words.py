"""Words that say little by themselves."""

from __future__ import annotations

#: No text to look for: they say what to do, where to put it, or nothing.
EMPTY = frozenset(
    """
    the a an of in on to and or into it its them they those these that this is are was were be by as
    at for from with without only just all any each every both one ones once up out off down back
    line lines row rows entry entries record records item items word words text texts phrase string
    file files folder column columns field fields first last top bottom which where who what whose
    there here new save saved saving write written put keep kept get find found show list listed
    store stored collect gather pick pull take copy result results output answer please can could
    you your me my we our i would like want need count counts number numbers name names then order
    value values have has having had contain contains containing contained include includes
    including mention mentions mentioning say says saying about talk talks like so if not no do does
    don't doesn't everything everyone everybody anything something other others rest remaining
    remainder left how many much call called named make made drop remove delete discard exclude
    throw away leave leaves goes go going separate own time times itself case sorted sort
    alphabetical alphabetically numerically ascending descending reverse
    """.split()
)
#: Capitals that name a format or stress a word, and are no text to look for.
NO_NEEDLES = frozenset(
    "CSV JSON TXT TSV XML HTML YAML PDF THE AND ALL NOT ONLY EVERY ANY NO".split()
)
#: Signs by name.
SIGNS = {
    "comma": ",",
    "semicolon": ";",
    "colon": ":",
    "space": " ",
    "tab": "\t",
    "dash": "-",
    "hyphen": "-",
    "dot": ".",
    "period": ".",
    "full stop": ".",
    "underscore": "_",
    "slash": "/",
    "pipe": "|",
    "vertical bar": "|",
    "nothing": "",
    "exclamation mark": "!",
    "question mark": "?",
    "逗号": ",",
    "分号": ";",
    "空格": " ",
    "制表符": "\t",
}
