"""Templates: one pass, nothing undefined, no way out of the box, no value run as a program."""

from __future__ import annotations

import subprocess
import time

import pytest

from openry.errors import TemplateError
from openry.orchestrator.templates import (
    check_template,
    program_from_value,
    render_command,
    render_env,
    render_text,
    render_value,
    uses_raw,
)

SCOPE = {
    "payload": {
        "dir_name": "keep", "items": [1, 2], "_stdout": "out\n", "t": True, "nothing": None,
        "deep": {"a": ["x", {"y": "it's"}]}, "a.b": "literal", "a": {"b": "path"},
        "template": "{{ payload.dir_name }}", "x": "$(touch pwned) `touch pwned`; touch pwned",
    },
    "inputs": {"n": 3, "day": "mon"},
    "env": {"HOME": "/home/me"},
    "steps": {"first": {"payload": {"k": "v"}}},
    "run": {"attempt": 2},
    "last_failure": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain $HOME $(date) ${#x} {a,b} {%s}", "plain $HOME $(date) ${#x} {a,b} {%s}"),
        ("{{ payload.dir_name }}/{{ inputs.n + 1 }}", "keep/4"),
        ("{{ payload.items | length == 2 }}", "true"),
        ("{{ payload.t }} {{ payload.nothing }} {{ payload.items }}", "true null [1, 2]"),
        ("{{ payload.deep }}", '{"a": ["x", {"y": "it\'s"}]}'),
        ("{{ payload.deep.a.1.y }} {{ payload['a.b'] }} {{ payload.a.b }}", "it's literal path"),
        ("{{ payload._stdout }}|", "out\n|"),
        ("{{ steps.first.payload.k }} {{ run.attempt }} {{ env.HOME }}", "v 2 /home/me"),
        ("{% for i in payload.items %}{{ loop.index }}:{{ i }} {% endfor %}", "1:1 2:2 "),
        ("{% if inputs.day == 'mon' %}yes{% else %}no{% endif %}", "yes"),
        ("{% set x = 2 %}{{ x * 3 }}", "6"),
        ("{{ payload.gone | default('d') }} {{ payload.get('gone', 'e') }}", "d e"),
        ("{{ payload.gone is defined }}", "false"),
        ("{{ payload.items | map('string') | join('-') }}", "1-2"),
        ("{{ payload.dir_name.upper() | replace('E', 'ee') }}", "KeeeeP"),
        ("{{ 'a' ~ 1 ~ 'b' }}", "a1b"),
        ("{{ {'a': {'b': 1}}}} {{ '}}' }}", '{"a": {"b": 1}} }}'),
        ("{% raw %}{{ .Name }}{% endraw %}", "{{ .Name }}"),
        ("a{# gone #}b {#here#}", "ab {#here#}"),
        ("{{ payload.template }}", "{{ payload.dir_name }}"),
        ("${payload.dir_name}", "${payload.dir_name}"),
        ("a \n {{- inputs.n -}} \n b\n", "a3b\n"),
    ],
)
def test_a_text_is_rendered(template, text):
    """Values show as they were given, everything else stays byte for byte; one pass only."""
    assert render_text(template, SCOPE) == text


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ payload.dir_nmae }}", "`payload.dir_nmae` is not defined (did you mean `dir_name`?)"),
        ("{{ payload.deep.b }}", "`b` is not defined (there are `a`)"),
        ("{{ payload.itemz | length == 0 }}", "`payload.itemz` is not defined"),
        ("{{ nope }}", "`nope` is not defined"),
        ("{{ payload.items[9] }}", "item 9 is not in a list of 2"),
        ("{{ [payload.gone] }}", "`payload.gone` is not defined"),
        ("{{ payload.dir_name.upper }}", "a method stands where a value belongs"),
        ("{{ payload.items() }}", "cannot be rendered: 'list' object is not callable"),
        ("{{ 1 / 0 }}", "cannot be rendered: division by zero"),
        ("{{ payload.", "`{{ payload.` is not closed"),
        ("{{ a b }}", "expected token"),
        ("{{ .Name }}", "write {% raw %}…{% endraw %} around text with braces"),
        ("{{ 'x' | uper }}", "unknown filter `uper` (did you mean `upper`?)"),
        ("{% include 'x' %}", "`{% include %}` is not available in templates"),
        ("{% if x %}", "unexpected end of template"),
        ("\U0010fff8", "reserved"),
    ],
)
def test_what_cannot_be_rendered_is_one_sentence(template, said):
    """An undefined name is an error before anything runs, and offers the nearest."""
    with pytest.raises(TemplateError) as caught:
        render_text(template, SCOPE)

    assert said in str(caught.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ cycler.__init__.__globals__.os.popen('touch pwned').read() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ payload['__class__'] }}",
        "{{ ''['__cl' ~ 'ass__'] }}",
        "{{ payload | attr('__class__') }}",
        "{{ payload.get.__self__ }}",
        "{{ (payload.items | map(attribute='__class__') | list)[0] }}",
        "{{ [''] | map('attr', '__class__') | list }}",
        "{{ lipsum }}", "{{ namespace(a=1) }}", "{{ joiner() }}", "{{ self }}", "{{ __state__ }}",
        "{{ '%s' | format(1) }}", "{{ '{0.__class__}'.format(1) }}", "{{ 'x'.format_map({}) }}",
        "{% import 'os' as o %}", "{% set payload.x = 1 %}", "{{ loop }}", "{{ range.__self__ }}",
    ],
)  # fmt: skip
def test_there_is_no_way_to_python(template):
    """No attribute, filter, global or tag leads out of a template."""
    with pytest.raises(TemplateError):
        render_text(template, SCOPE)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 10**9 }}", "{{ 'a' * 2000000 }}", "{{ [0] * 10**9 }}", "{{ 10 ** (10 ** 9) }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{{ range(10 ** 12) | list }}",
        "{% for i in range(99999) %}" + "x" * 1000 + "{% endfor %}",
        "{% set a = 'x' * 1000 %}" + "{% set a = a ~ a %}" * 20 + "{{ a }}",
        "{% set a = 'x' * 1000 %}" + "{% set a = a + a %}" * 20 + "{{ a }}",
        "{% set a = [1] * 1000 %}{% set a = [a] * 1000 %}{% set a = [a] * 1000 %}{{ a }}",
        "{% set a = 3 %}" + "{% set a = a * a %}" * 40 + "{{ a }}",
        "{{ ['x' * 100000] * 1000 | join }}{{ (['x' * 100000] * 1000) | join }}",
        "{{ 'x' | replace('', 'y' * 900000) | replace('y', 'y' * 900000) }}",
        "{{ range(99999) | map('replace', '', 'x' * 1000) | list }}",
        "{{ 1.5 | round(10 ** 9, 'ceil') ~ 'x' * 10 ** 8 }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "1+" * 20000 + "1 }}",
        "{{ 'x' | indent(10 ** 9) ~ ('x\n' * 100000) | indent(80) }}",
        "{{ '%999999999d' % 1 }}",
    ],
    ids=lambda template: template[:50],
)  # fmt: skip
def test_rendering_is_bounded_in_time_and_size(template):
    """Whatever a template asks for, it ends within about a second, refused."""
    started = time.process_time()
    with pytest.raises(TemplateError):
        render_text(template, SCOPE)

    assert time.process_time() - started < 3


def test_arguments_keep_their_type():
    """One `{{ … }}` alone gives the value; text around it makes text."""
    args = {
        "n": "{{ inputs.n }}", "list": "{{ payload.items }}", "text": "n={{ inputs.n }}",
        "ref": "${payload.t}", "deep": [{"x": "{{ payload.deep.a.0 }}"}, 5, None],
    }  # fmt: skip

    assert render_value(args, SCOPE) == {
        "n": 3, "list": [1, 2], "text": "n=3", "ref": True, "deep": [{"x": "x"}, 5, None]
    }  # fmt: skip


def test_env_values_take_both_forms():
    """`env:` is the way by which values reach any program."""
    made = render_env({"A": "{{ payload.x }}", "B": "${payload.a.b}!", "C": "$HOME"}, SCOPE)

    assert made == {"A": SCOPE["payload"]["x"], "B": "literal!", "C": "$HOME"}


def test_a_command_without_templates_is_untouched():
    """Byte for byte what was written, whatever a shell makes of it."""
    text = "cat <<'E' | awk '{print $1}'\n${x:-`a`} $((1+1)) {%s}\nE\n"

    assert render_command(text, SCOPE) == (text, {})


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    "command",
    [
        "printf %s {{ payload.x }}", "printf %s '{{ payload.x }}'", 'printf %s "{{ payload.x }}"',
        "printf %s ${payload.x}", "printf %s '${payload.x}'", 'printf %s "${payload.x}"',
        'printf %s "$(printf %s \'{{ payload.x }}\')"', "x={{ payload.x }}; printf %s \"$x\"",
    ],
)  # fmt: skip
def test_a_value_in_a_command_is_a_value(command, shell, tmp_path):
    """In each kind of quotes the shell prints the value and runs none of it."""
    text, env = render_command(command, SCOPE)
    run = subprocess.run([shell, "-c", text], env=env, cwd=tmp_path, capture_output=True, text=True)

    assert run.stdout == SCOPE["payload"]["x"]
    assert list(tmp_path.iterdir()) == []


def test_an_undefined_name_keeps_a_command_from_running():
    """`rm -rf dir/{{ typo }}/*` never reaches a shell."""
    with pytest.raises(TemplateError, match="did you mean `dir_name`"):
        render_command("rm -rf work/{{ payload.dir_nmae }}/*", SCOPE)
    with pytest.raises(TemplateError, match="`payload.gone` is not defined".replace(".", r"\.")):
        render_command("rm -rf work/${payload.gone}/*", SCOPE)


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("cat <<E\n@\nE", "in a heredoc"), ("cat <<'E'\n@\nE", "in a heredoc"),
        ("cat <<-E\n\t@\n\tE", "in a heredoc"), ("cat <<@\nx\n@", "as the end mark of a heredoc"),
        ("echo `ls @`", "in backticks"), ('echo "`ls @`"', "in backticks"),
        ("echo $((@ + 1))", "in arithmetic"), ("((x = @))", "in arithmetic"),
        ("for ((i=0; i<@; i++)); do :; done", "in arithmetic"), ("echo $[@]", "in arithmetic"),
        ("declare -i x=@", "in arithmetic"), ("[[ @ -eq 3 ]]", "in a numeric test"),
        ("[[ -v @ ]]", "in a numeric test"), ("a[@]=1", "as an array's index"),
        ("declare @=1", "as a variable's name"), ("read @", "as a variable's name"),
        ("test -v @", "as a variable's name"), ("printf -v @ x", "as a variable's name"),
        ("echo ${x:-@}", "inside `${…}`"), ('echo "${x:-@}"', "inside `${…}`"),
        ("eval echo @", "in what `eval` runs"), ("trap 'rm @' EXIT", "in what `trap` runs"),
        ("alias x=@", "in what `alias` runs"), ("watch ls @", "in what `watch` runs"),
        ("make X=@", "in what `make` runs"), ("let x=@", "in what `let` runs"),
        ("sh -c 'echo @'", "in a program for `sh`"), ('bash -ec "@"', "in a program for `bash`"),
        ("env A=1 sudo sh -c '@'", "in a program for `sh`"), ("env -S '@'", "in what `env -S`"),
        ("find . -exec sh -c 'rm @' \\;", "in a program for `sh`"),
        ("docker run i bash -c 'x @'", "in a program for `bash`"),
        ("echo @ | sh", "in what `sh` reads"), ("echo @ | python3 -", "in what `python` reads"),
        ("echo @ | xargs -I{} sh -c 'ls {}'", "in what `xargs` reads"),
        ("echo @ | sqlite3 db", "in what `sqlite3` reads"), ("source <(echo @)", "`source` reads"),
        ("echo @ | ssh host", "in what `ssh` reads"), ("echo @ | at now", "in what `at` reads"),
        (". /dev/stdin <<< @", "in what `.` reads"), ("echo @ | bash -s", "`bash` reads"),
        ("bash <<< @", "in what `bash` reads"), ("bash <(echo @)", "in a program for `bash`"),
        ("python3 -c 'print(@)'", "in a program for `python`"),
        ("perl -ne 'print @' f", "in a program for `perl`"), ("node -e @", "for `node`"),
        ("ruby -e '@'", "for `ruby`"), ("php -r '@'", "for `php`"), ("su bob -c 'ls @'", "`su`"),
        ("awk '{print @}' f", "in a program for `awk`"), ("awk -F, '@' f", "for `awk`"),
        ("sed 's/a/@/' f", "in a program for `sed`"), ("sed -n -e '/@/p' f", "for `sed`"),
        ("sed -ne '/@/p' f", "for `sed`"), ("sed --expression=s/@/x/ f", "for `sed`"),
        ("jq '.@' f", "in a program for `jq`"), ("ssh host ls @", "in a command for `ssh`"),
        ("sqlite3 db 'select @'", "in statements for `sqlite3`"),
        ("echo \\@", "after a backslash"), ('echo "\\@"', "after a backslash"),
        ("echo $@", "after a `$`"),
    ],
)  # fmt: skip
def test_where_a_value_would_be_program_text_is_a_load_error(command, where):
    """Every such place is found before a run, and again when a run comes to it."""
    template = command.replace("@", "{{ payload.dir_name }}")
    names = {"payload": None}
    flaws = check_template(template, names, command=True)

    assert any(where in flaw.message for flaw in flaws), flaws
    assert all(flaw.shown == "{{ payload.dir_name }}" for flaw in flaws)
    assert all(flaw.hint for flaw in flaws)
    with pytest.raises(TemplateError, match="would be program text"):
        render_command(template, SCOPE)


@pytest.mark.parametrize(
    "command",
    [
        "sh -c 'echo \"$1\"' _ @", "python3 -c 'import sys' @", "python3 tool.py @ '@'",
        "awk -v x=@ '{print x}' @", "awk -f p.awk @", "sed -e s/a/b/ @", "sed 's/a/b/' @",
        "jq --arg k @ '.[$k]' @", "grep -c sh @", "which awk @", "find . -name '@' -delete",
        "ssh -i key @ uptime", "# it's @\necho @", "case @ in a) echo @;; *) echo \"@\";; esac",
        'x=$(case $y in a) echo @;; esac); echo "@"', "if [ @ -eq 3 ]; then echo @; fi > @",
        "[[ @ == x* ]]", "export X=@ && local y=@", "a=(@ '@')", "f() { echo @; }; f @ | tee @",
        "cat <<E\nbody\nE\necho '@'", "cat @ <<'E' | sort\nit's\nE\n", "diff <(sort @) <(sort @)",
        "echo it\\'s @", "echo \"it's @\"", "cat <<< @", 'echo "${x:-it\'s}" @', "! grep @ f &",
        "while read -r l; do echo \"$l\" @; done < @", "git commit -m \"@\" -- @",
        "sqlite3 @ 'select 1'", "(cd @ && ls)", "source @/bin/activate",
        "arr+=(@); select x in @; do :; done", "echo @ | xargs -n1 sh -c 'ls \"$0\"'",
        "echo @ | ssh host cat", "echo @ | sqlite3 db 'select 1'", "echo @ | python3 tool.py",
        "echo @ >&2 2>&1 &> @", "echo @ | xargs -I{} ls {}",
        "echo a@b'c@d'\"e@f\"g", "psql -h @ db",
    ],
)  # fmt: skip
def test_where_a_value_stays_a_value_there_is_nothing_to_say(command):
    """Ordinary command lines are not refused."""
    template = command.replace("@", "{{ payload.v }}")

    assert check_template(template, {"payload": None}, command=True) == []


def test_a_branching_command_is_judged_by_what_it_becomes():
    """With `{% if %}` the text is only known at run time; then it is judged all the same."""
    template = "echo {% if inputs.n %}'{% endif %}{{ payload.x }}{% if inputs.n %}'{% endif %}"
    text, env = render_command(template, SCOPE)

    assert text == "echo ''\"${RY_VALUE_1}\"''"
    assert env == {"RY_VALUE_1": SCOPE["payload"]["x"]}
    with pytest.raises(TemplateError, match="in backticks"):
        render_command("echo {% if inputs.n %}`{% endif %}{{ payload.x }}`", SCOPE)


def test_raw_opts_out_and_can_be_seen():
    """`| raw` puts a value in as text; a linter finds it."""
    assert render_command("echo {{ payload.x | raw }}", SCOPE)[0] == f"echo {SCOPE['payload']['x']}"
    assert uses_raw("echo {{ payload.x | raw }}")
    assert not uses_raw("echo {{ payload.raw }}")


def test_a_value_that_decides_the_program_can_be_seen():
    """`{{ x }} arg` runs whatever the value names; a linter finds it."""
    assert program_from_value("cd a && {{ inputs.tool }} -v") == "{{ inputs.tool }}"
    assert program_from_value("X={{ a }} tool {{ b }}") == ""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\0b", "has a NUL in it"),
        ("x" * 200_000, "is larger than 120 KiB (write it to a file and name the file)"),
        ("\ud83d", "half a character"),
    ],
)
def test_a_value_no_variable_can_hold_is_an_error(value, said):
    """What the kernel would refuse is said before a process is started."""
    with pytest.raises(TemplateError) as caught:
        render_command("echo {{ payload.v }}", {"payload": {"v": value}})

    assert said in str(caught.value)


def test_names_are_checked_before_a_run():
    """Roots, declared inputs and steps are known when a file loads; payload keys are not."""
    names = {"payload": None, "inputs": frozenset({"day"}), "steps": frozenset({"a"})}
    template = "{{ payload.any }} {{ inputs.dya }} {{ steps.b.payload }} {{ item }}"

    assert [(f.message, f.hint) for f in check_template(template, names)] == [
        ("`inputs.dya` is not defined: there is no input `dya`", "did you mean `day`?"),
        ("`steps.b` is not defined: there is no step `b`", "there are `a`"),
        ("`item` is not defined", "there are `inputs`, `payload`, `steps`"),
    ]
    assert check_template("{{ inputs.dya | default(1) }}", names) == []
