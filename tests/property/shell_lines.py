"""Shell lines at random: pieces, commands nested in each other, and slips in both."""

from __future__ import annotations

import random
from collections.abc import Callable

#: Stub programs; `p4` and `p5` fail, so that `||`, `until` and `else` are reached.
STUBS = ("p1", "p2", "p3", "p4", "p5")
PIECES = (
    *STUBS, *STUBS,
    " ", " ", " ", " ", "; ", "\n", " | ", " && ", " || ", " & ", "(", ")", "{ ", "; }", "$(",
    "`", "\"", "'", "\\", "$x", "${x:-", "}", "x=", "x=p1 ", "<<E\n", "\nE\n", "<<<", "> f ",
    "< f ", "2>&1", "if ", "; then ", "; fi", "for i in a b; do ", "; done", "while ",
    "case a in a) ", ";; esac", "[[ ", " ]]", "((", "))", "$((", "1", "+", "!", " ! ", "time ",
    "#", " #", "$'", "\\x70", "*", "?", "{p1,p2}", "~", "=", "a", "-n", "p1() { ",
    "function f { ", "f", "<(", "$\"", "${x#", "${x/", "%", "p\\\n1", "|& ", "&> f ", "in ",
    "do ", "coproc ", "[ ", " ]", "eval ", "\t", "$", "''p1", "'p2'", "\"p3\"", "\v", "\f",
    "\\\n", "!!", "!p1", "a=(", "a[0]=", "+=", "<<-E\n", "\n\tE\n", "<<'E'\n", ";;& ", ";& ",
    "@(", "+(", "!(", "elif ", "else ", "until ", "select i in a; do ", ">|", "<>", ">&", "<&-",
    "{v}>f ", "$[", "${!x}", "${#", "${x@P}", "${x[", "alias ", "exec ", "env ", "xargs ",
    "\u00a0", "\u2028", "é",
)  # fmt: skip
#: `§` stands for another command.
SHAPES = r"""
§; §|§ && §|§ || §|§ \P §|§ & §|(§)|{ §; }|! §|time §|time -p §|! time §|time ! §|§ ;| § |	§|§ \P& §
if §; then §; fi|if §; then §; elif §; then §; else §; fi|while §; do §; break; done
until §; do §; break; done|for i in a b; do §; done|for i do §; done|for i in $(§); do §; done
for ((i=0; i<2; i++)); do §; done|for ((i=0;i<1;i++)) { §; }|for i in a; { §; }
select i in a; do §; break; done <<< 1|if (( 1 )); then §; fi|if [[ a < b ]]; then §; fi
case $(§) in a) §;; *) §;; esac|case x in (x\Py) §;;& z) §;; *) §; esac|case x in x) §;& y) §;; esac
case a in a) § ;; esac; §|case `§` in *) § ;; esac|case x in "$(§)") §;; x) §;; esac
f() { §; }; f|function f { §; }; f|function f() { §; }; f|f () ( § ); f|f() if §; then §; fi; f
p1() { §; }; p1|f() { §; return; §; }; f|f() { §; } > f; f|g() { f() { §; }; f; }; g|f() [[ $(§) ]]; f
echo $(§)|echo "$(§)"|echo `§`|echo "`§`"|echo "a$(echo "$(§)")b"|echo $"$(§)"|echo $(echo `§`)
x=$(§)|x=`§` §|x=$(§) y="$(§)" §|a=($(§) b)|a=([0]=$(§) [1]=c)|a[0]=$(§)|a+=($(§) "$(§)")
declare x=$(§)|declare -a a=($(§))|export x="$(§)"|readonly y=$(§)|f() { local x=$(§); }; f
[[ -n $(§) && a == b ]]|[[ $(§) =~ a(b\Pc) ]]|[[ a > b ]] \P\P §|[[ ! -f $(§) ]]|[ -n "$(§)" ]|test -z `§`
(( $(§)1 ))|echo $(( $(§) 1 ))|echo $(( 1 + `§` 2 ))|let x=1; §|(( x = 1 )) && §|echo $((1)); §
echo ${x:-$(§)}|echo "${x:+`§`}"|echo ${x/$(§)/b}|echo ${x#$(§)}|echo ${a[$(§)0]}|echo "${x:=$(§)}"
echo ${x:-"$(§)"}|echo "${x:-"$(§)"}"|echo ${x:-'$(§)'}|echo "${x:-'$(§)'}"|echo ${x:$(§)1}
p1 <(§)|§ > >(§)|p1 < <(§)|p2 <(§) <(§) \P §|p1 2> >(§)|echo "<(§)"; §|x=<(§)
p1 <<< "$(§)"|p1 <<< $(§)|p1 <<<'$(§)'; §|p1 <<< a \P §|x=1 <<<`§` §
coproc §|coproc N { §; }|eval §|eval '§'|. <(echo '§')|trap '§' EXIT|exec §|command §|builtin §
env §|env -i PATH="$PATH" x=1 §|env -u x -- §|nice -n 1 §|timeout 5 §|nohup §|xargs §|xargs -n1 §
xargs -I{} §|env -S '§'|sh -c '§'|bash -c '§'|sh -c "§"|sh -ec '§'|env nice timeout 3 §|command -p §
find . -maxdepth 0 -exec § \;|find . -maxdepth 0 -exec § +|find f -prune -o -exec § \;|setsid §
set -- a; §|x=p1; $x|x=p2; "$x" a|${x:-p1}|printf -v x p1; $x|x=p1 y=$x; $y|x=p; ${x}1|x=p1; x=p2; $x
alias q=p1; §|shopt -s expand_aliases; alias q=p1; q|hash -p p1 q; q|read x <<< p1; $x|p1 $(§) "$§"
> f §|a=1 b=2 § > f 2>&1|§ 2>&1 \P §|§ &> f|§ >& f|{fd}> f §|§ {fd}>&-|3> f § >&3|§ >f\P §|§ <>f
{p1,p2}|{p1,a}|p{1,2}|{p1..p2}|{p,}1|{§,}|p{1,2} {a,$(§)}|"{p1,p2}"; §|{p1,p2}{,}|\{p1,p2}
$'p1'|$'\x70\x31'|$'\u0070'1|$'p\61'|$'a\'p1; §|$'a\\'; §|$"p1"|p\1|"p"1|p''1|'p'"1"|\p1|p$'1'|echo $'`§`'
p1 # §|p1 #§; §|echo a#b; §|echo 'a'#b; §|echo $#; §|echo ${#x}; §|echo ${x//#/a}; §|echo "$x#"; §
echo "a\"; §; echo \"b"|echo 'a\'; §; echo 'b'|echo \'; §; echo \'|echo "'"; §; echo "'"|echo \\; §
echo \"; §; echo \"|echo a\;§|echo "\\"; §|echo "\$(§)"|echo \$\(§\)|echo '`§`'|echo "\`§\`"|echo \`§\`
p1 !(a); §|p1 @(a\Pb); §|p1 +(a); §|echo !!; §|!p1|! ! §|echo a!b; §|[[ a == @(a\Pb) ]] && §
while read -r l; do §; done <<< a|(§) \P { §; }|{ §; } > f|(§) 2>&1 \P §|{ §; }; §|{ § } ; }|( (§) ); §
((§)|$((§))|$( (§) )|$( ( (§) ) )|`echo \`§\``|"`echo \`§\``"|`echo "\`§\`"`|"`echo \"$(§)\"`"|$(§) a
unset -f f; §|enable -n echo; §|return; §|exit; §|break; §|true; §|false \P\P §|: $(§)|: "${x:=a}" §|[ a ]; §
sh <<< '§'|bash <<< "§"|echo '§' \P sh|printf '%s\n' '§' \P bash|sh <(echo '§')|. <(echo "§")|bash -s <<< '§'
env sh <<< '§'|timeout 5 bash <<<'§'|trap "§" EXIT|mapfile -C '§' -c 1 x <<< a|let 'x=1$(§)'|bash -l -c '§'
while read -r x; do §; done < <(§)|ls \P while read x; do "$x"; done|x=p1; f() { $x; }; f|x=$(§); "$x"|read x <<< p1; $x
echo a	§|echo	;§|§;§|§&&§|§\P\P§|(§)|{ §;}|if §;then §;fi|case a in a)§;;esac|for i in a;do §;done
""".strip("\n")  # noqa: E501  # one group of constructs a line
#: The same over several lines; `~` ends one.
TALL = (
    '§~§|p1 <<E~$(§)~E~§|p1 <<"E"~$(§)~E~§|p1 <<-E~\t`§`~\tE~§|p1 <<A <<B~$(§)~A~`§`~B~§|'
    "p1 <<E \\P §~${x:-$(§)}~E|p1 <<E; §~\"$(§)\"~E~|echo $(p1 <<E~$(§)~E~)|p1 <<'E'~`§`~E~§|"
    "p1 <<E && §~\\$(§)~E|p1 <<\\E~$(§)~E~§|p1 <<E~$(p2 <<F~$(§)~F~)~E~§|§ <<E~E~§|p1 <<E #§~E~§|"
    "p1\\~a; §|p1 \\~\\P §|p1 \\P~§|p1 &&~§|# §~§|p1 # a ' \"~§|case a in~a) §;;~*) §~esac|"
    "if §~then~§~fi|f()~{~§~}~f|for i~in a~do §~done|while §~do~§~break~done|{~§~§~}|(~§~)|"
    "echo \"a~b\"; §|echo 'a~§'; §|x='~'; §|echo $(~§~)|echo `~§~`|echo $(# a )~§)|"
    "echo $(case a in a) §;; esac)|"
    "shopt -s extglob~p1 @(a\\Pb)~§|shopt -s expand_aliases~alias q=p1~q~§|set -o history~!!~§|"
    "p1 <<E~a\\~E~§~E|p1 <<E~'~$(§)~'~E~§|p1 <<E~`echo \\`§\\``~E|p1 <<E~\"`§`\"~E|"
    'x=$(cat <<E~§~E~)|p1 <<E~`echo \\"; §; echo \\"`~E~§|'
    'p1 <<E~${x:-`echo \\"; §; echo \\"`}~E~§|p1 <<E~a\\~E~p2 <<"E"~$(§)~E~§~E|'
    "p1 <<E~a\\\\~E~§|"
    'echo "${x:-`echo \\"; §; echo \\"`}"|echo "`echo \\"; §; echo \\"`"|'
    "sh <<E~§~E|bash <<'E'~§~§~E|sh <<\\E~`§`~E~§|x=p1; sh <<E~$x~E|"
    "echo '§~§' \\P sh|trap '§~§' EXIT|"
    "p1 <<-\tE~\t$(§)~\tE~§|p1 <<E>f~§~E~§|p1 <<$x~§~$x~§|p1 <<E\\~F~§~EF~§|[[ a ||~-n $(§) ]]"
)
LEAVES = ("", "", "", " a", " -n", " $x", ' "$x"', " *", " > f", " 'a b'", " [a]*", " ~", " a=b")
SLIPS = "'\"\\`$(){}[]<>|&;#!=*? \n\t~-%@"


def _split(text: str) -> tuple[str, ...]:
    return tuple(one.replace(r"\P", "|") for one in text.replace("\n", "|").split("|") if one)


FLAT = _split(SHAPES)
NESTED = (*FLAT, *(one.replace("~", "\n") for one in _split(TALL)))


def line(dice: random.Random) -> str:
    """One line: of pieces, or of shapes in shapes; one in three with a slip or two in it."""
    kinds: tuple[Callable[[random.Random], str], ...] = (_pieces, _nested, _nested, _nested)
    text = dice.choice(kinds)(dice)
    for _ in range(dice.choice((0, 0, 0, 0, 1, 2))):
        text = _slipped(text, dice)
    return text


def _pieces(dice: random.Random) -> str:
    return "".join(dice.choice(PIECES) for _ in range(dice.randint(2, 12)))


def _nested(dice: random.Random, depth: int = 0) -> str:
    if depth and dice.random() < (0.45, 0.45, 0.7, 1.0)[depth]:
        return dice.choice(STUBS) + dice.choice(LEAVES)
    first, *rest = dice.choice(NESTED).split("§")
    return first + "".join(_nested(dice, depth + 1) + one for one in rest)


def _slipped(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    kind = dice.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    other = dice.choice(SLIPS) if kind == 1 else text[at : at + dice.randint(1, 4)]
    return text[:at] + other + text[at:]
