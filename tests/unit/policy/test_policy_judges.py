"""What is refused however it is written, and what is not refused however it looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import refusals
from openry.policy import Decision, load_policy
from openry.policy.commands import explain

PLACE = {"cwd": "/w", "workspace": "/w", "home": "/h", "path": "/usr/bin:/bin"}
DEEPER = {**PLACE, "cwd": "/w/deep", "workspace": "/w/deep"}
ALL_BUT_RM = {"default": "allow", "commands": [{"deny": "rm"}]}

HIDDEN_RM = r"""
rm x
true; rm x
true|rm x
true&rm x
(rm x)
{ rm x; }
! rm x
true | ! rm x
time rm x
true | time rm x
if rm x; then true; fi
if true; then rm x; fi
if false; then true; elif rm x; then true; fi
if false; then true; else rm x; fi
while rm x; do true; done
until true; do rm x; done
for f in a; do rm x; done
for ((i=0;i<1;i++)); do rm x; done
select f in a; do rm x; done
case a in a) rm x;; esac
case a in (b|a) rm x;& esac
foo_fn() { rm x; }; foo_fn
function foo_fn { rm x; }
echo $(rm x)
echo "$(rm x)"
echo `rm x`
echo "`rm x`"
echo `echo \`rm x\``
echo ${y:-$(rm x)}
echo "${y:-$(rm x)}"
echo "${y:-`rm x`}"
echo ${y/a/$(rm x)}
echo ${y#$(rm x)}
y=$(rm x)
y=($(rm x))
echo <(rm x)
cat <<< "$(rm x)"
[[ -n $(rm x) ]]
[ -n "$(rm x)" ]
echo {a,$(rm x)}
export y=$(rm x)
true > $(rm x)
echo $"$(rm x)"
env rm x
env A=1 rm x
env -i A=1 rm x
env -S 'rm x'
env --split-string='rm x'
env --spl='rm x'
timeout 5 rm x
timeout -k 1 5 nice -n 3 rm x
nohup rm x
setsid rm x
stdbuf -oL rm x
command rm x
command -p rm x
builtin command rm x
xargs rm
xargs -n1 rm
xargs -I{} rm {}
xargs -0 -P4 -n 1 rm
find . -exec rm {} +
find . -execdir rm {} \;
find . -ok rm {} \;
sh -c 'rm x'
bash -c "rm x"
sh -c 'sh -c "rm x"'
sh -ec 'rm x'
busybox rm x
exec rm x
r''m x
"rm" x
\rm x
$'\x72m' x
$'\162m' x
{rm,x}
/bin/rm x
/usr/bin/../bin/rm x
/proc/self/root/bin/rm x
A=1 rm x
>f rm x
2>&1 rm x
x=1;rm x
echo a #b
""".strip().splitlines()[:-1]

NOT_ANALYSED = r"""
$x y
"$x" y
r$x y
${x} y
eval "rm x"
source ./x
. ./x
alias ls=rm
trap 'rm x' EXIT
ls() { true; }; ls
ls () (true)
echo ${x@P}
echo ${!x}
echo $((a[$(rm x)]))
x='a[$(rm y)]'; echo $((x))
x='a[$(rm y)]'; [[ $x -eq 1 ]]
x='a[$(rm y)]'; echo ${y:x}
a[$(id)]=1
a=(['b[$(rm x)]']=1)
a=([b[$(rm x)]]=1)
a=([1]=1 ["x"]=2)
x='b[$(rm y)]'; a=([x]=1)
x='b[$(rm y)]'; a+=([$x]+=1)
x='b[$(rm y)]'; a[x]=1
x='b[$(rm y)]'; declare -a a=([x]=1)
declare -a 'a=([0]=$(rm x))'
declare 'x[$(rm y)]=1'
declare -a a="$x"
a=(); declare a="$x"
a=(1); f() { local a="$x"; }; f
mapfile a < f; typeset a=$x
o=-a; declare $o a="$x"
RANDOM='b[$(rm x)]'
OPTIND='b[$(rm x)]'; true
read SRANDOM < f
export HISTCMD="$x"
printf -v RANDOM %s "$x"
unset 'a[$(rm x)]'
printf -v 'a[$(rm x)]' y
read 'a[$(rm x)]'
declare -i x='a[$(rm y)]'
let 'x=a[$(rm y)]'
echo rm x | sh
cat x | sh
sh <(cat x)
sh < f
bash <<< 'rm x'
sh -c "$x"
f() { echo $(($1)); }; f 'a[$(rm y)]'
set -- 'a[$(rm y)]'; echo $(($1))
set -- 'a[$(rm y)]'; echo $(($*))
: 'a[$(rm y)]'; echo $(($_))
: 'a[$(rm y)]'; echo $((_))
read <<< 'a[$(rm y)]'; echo $((REPLY))
[[ 'a[$(rm y)]' =~ .* ]]; echo $((BASH_REMATCH))
mapfile <<< 'a[$(rm y)]'; echo $((MAPFILE))
select i in a; do echo $((REPLY)); break; done <<< 'a[$(rm y)]'
sh -c 'echo $(($1))' _ 'a[$(rm y)]'
bash -c 'echo $(($1))' _ 'a[$(rm y)]'
bash -c 'echo $(($0))' 'a[$(rm y)]'
env 'x=a[$(rm y)]' bash -c 'echo $((x))'
x='a[$(rm y)]' bash -c 'echo $((x))'
export x='a[$(rm y)]'; bash -c 'echo $((x))'
x='a[$(rm y)]'; export x; bash -c '[[ x -eq 1 ]]'
x='a[$(rm y)]'; y=x; echo $((y))
x='a[$(rm y)]'; y=x; z=y; echo ${q:z}
x='a[$(rm y)]'; a=(x); echo $((a))
x='a[$(rm y)]'; a[0]=x; echo $((a[0]))
for x in 'a[$(rm y)]'; do echo $((x)); done
x=([0]='a[$(rm y)]'); echo $((x))
case a in a) x='a[$(rm y)]';; esac; (( x ))
: ${x='a[$(rm y)]'}; (( x ))
x+='a[$(rm y)]'; (( x ))
printf -v x '%s' 'a[$(rm y)]'; (( x ))
xargs -I{} bash -c 'echo $(({}))' <<< 'a[$(rm y)]'
f() { local x=$1; echo $((x)); }; f 'a[$(rm y)]'
f() { shift; echo $(( $# + $1 )); }; f 1 'a[$(rm y)]'
x='a[$(rm y)]' ; [[ $x -gt 1 ]]
set -- 'a[$(rm y)]'; [[ $1 -gt 1 ]]
set -- 'a[$(rm y)]'; [[ 1 -gt "$1" ]]
set -- 'a[$(rm y)]'; echo ${HOME:$1}
set -- 'a[$(rm y)]'; a[$1]=2
set -- 'a[$(rm y)]'; a=([$1]=2)
set -- 'a[$(rm y)]'; echo ${a[$1]}
set -- 'a[$(rm y)]'; for ((i=$1;i<0;i++)); do :; done
a=('a[$(rm y)]'); echo $((${a[0]}))
a=('a[$(rm y)]'); echo $((${a}))
a=('b[$(rm y)]'); echo $((${a[@]}))
getopts a: o -a 'a[$(rm y)]'; echo $((OPTARG))
wait -n -p x & echo $((x))
python3 -c 'import os'
awk 'BEGIN{system("rm x")}'
awk '$1 ~ /"/ ; {system("rm x")}'
awk 'BEGIN{"rm x"|getline}'
awk '{print > "f"}'
sed '1e rm x' f
sed 's/a/b/e' f
sed -n '/x/w f' f
sed --expr='1e rm x' f
tar -cf a --checkpoint=1 --checkpoint-action=exec=x b
tar --use-comp=x -cf a b
sort --compress-prog=x f
sort *
rg --pre=x y
git -c alias.x='!rm y' x
git --exec-path=x status
man -P x y
find . "$x"
GIT_EXTERNAL_DIFF=x git diff
PATH=. ls
export PATH=.:$PATH
env PATH=. ls
LD_PRELOAD=x ls
BASH_ENV=x bash f
exec 3<>/dev/tcp/127.0.0.1/80
coproc ls
echo 'unfinished
cat <<E
echo a &&
""".strip("\n").splitlines()

HARMLESS = r"""
echo 'a; rm x && rm y'
echo "rm x"
grep -E 'rm|sudo' f
grep 'a|b' f | sort -u
echo rm
git commit -m "rm x; git push"
awk '{print $1}' f
awk -F: '$2 > 1 {print $1 "|" $2}' f
awk '{a[$1]++} END {for (k in a) print k, a[k]}' f
sed -n '/e w/p; 1,3p' f
sed 's/[^/]*$//; s,a,b,g' f
sed -e ':a' -e 'N' -e '$!ba' -e 's/\n/,/g' f
find . -name '*.py' -exec grep -l import {} +
for f in src/*.py; do wc -l "$f"; done
for i in {1..5}; do echo $((i * 2)); done
i=0; while [ $i -lt 3 ]; do i=$((i+1)); done
x=5; echo "$x" ${x:-none} ${#x} ${x%.*}
[[ -f a && b == c* ]] && echo yes
cat <<'E' | sort
cd src && ls
ls > files.txt 2>/dev/null
if [ -f a ]; then echo b; fi # rm x
PAGER=cat git log
GIT_AUTHOR_NAME=a git commit -m x
declare x=$(cat f) y="$(cat g)"
local -r x=$(cat f)
files=($(ls) [a-z]*.txt); for f in "${files[@]}"; do echo "$f"; done
a=(1 2 3); a[1]=4; a+=([5]=6); echo "${a[1]}" "${#a[@]}"
declare -A m=([one]=1 [two]=2); m[three]=$(cat f); echo "${!m[@]}"
n=$(wc -l < f); echo $((n / 2)) $(( $(grep -c a f) + 1 ))
for i in $(seq 1 3); do echo $((i * i)); done
lines=$(cat *.txt | wc -l | tr -d ' '); [[ $lines -gt 3 ]] && echo $((lines - 1))
add() { echo $(($1 + $2)); }; add 1 2; add $((3 * 2)) ${#x}
now=$(date +%s); echo $((now - 60))
a=(1 2 3); for i in 0 1 2; do s=$((s + a[i])); done; echo $s
RANDOM=42; echo $RANDOM; printf 'SECONDS %s' 1
timeout 10 env LC_ALL=C sort data.csv
echo {a,b}.txt '{x}' "${HOME:-none}"
tar czf a.tgz src
sort -t, -k2n data.csv | uniq -c | head -n 3
""".strip().splitlines()


@pytest.mark.parametrize("line", HIDDEN_RM)
def test_a_denied_program_is_found_however_it_is_called(line: str) -> None:
    """Every simple command of a line is judged, at any depth and behind any wrapper."""
    verdict = load_policy(ALL_BUT_RM).decide(line, **PLACE)

    assert verdict.decision is Decision.DENY
    assert any(part.rule == "deny rm" or part.rule == "opaque" for part in verdict.parts)


@pytest.mark.parametrize("line", NOT_ANALYSED)
def test_what_may_run_anything_is_refused_even_by_default_allow(line: str) -> None:
    """What cannot be analysed, and options that run something, need a rule that names them."""
    assert load_policy(ALL_BUT_RM).decide(line, **PLACE).decision is Decision.DENY


@pytest.mark.parametrize("line", HARMLESS)
def test_what_only_looks_dangerous_is_allowed(line: str) -> None:
    """A refusal without need costs an agent a turn, and a person their trust."""
    text = f"{line}\nrm x\nE\n" if "<<" in line else line
    verdict = load_policy(ALL_BUT_RM).decide(text, **PLACE)

    assert verdict.decision is Decision.ALLOW, verdict.reason


@pytest.mark.parametrize("sign", ["\0", "\r", "\u202e", "\u200b", "\ue000", "\x07", "\ufeff"])
def test_signs_that_hide_are_refused_outside_quotes(sign: str) -> None:
    """A line must be what it looks like."""
    assert load_policy(ALL_BUT_RM).decide(f"echo a{sign}b", **PLACE).decision is Decision.DENY


def test_a_line_that_goes_on_is_refused_and_text_in_quotes_may_hold_anything() -> None:
    """A backslash before a line end joins lines; inside quotes line ends are text."""
    policy = load_policy(ALL_BUT_RM)

    assert policy.decide("r\\\nm x", **PLACE).decision is Decision.DENY
    assert policy.decide("echo 'a\u200bb\r\n c'", **PLACE).decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("rm build/a", True),
        ("rm ./build/../build/a", True),
        ("cd build && rm a", True),
        ("rm build", False),
        ("rm -rf build/../src", False),
        ("rm buildx/a", False),
        ("cd build; rm a", False),
        ("rm build/*", True),
        ("rm build/.*", False),
        ("rm $x", False),
        ("rm build/$x", False),
        ("rm */a", False),
        ("rm /w/build/a", True),
        ("rm -- -x", False),
    ],
)
def test_paths_narrow_a_rule(line: str, allowed: bool) -> None:
    """Every file a call names must lie where the rule says, from wherever it may be run."""
    rules = [{"allow": ["cd"]}, {"allow": "rm", "paths": ["build/**"]}]
    policy = load_policy({"default": "deny", "commands": rules})

    assert policy.decide(line, **PLACE).allowed is allowed


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("-s https://api.test/v1/a?b=c", True),
        ("-sS -f https://API.test/v1/a/b", True),
        ("https://api.test/v2/a", False),
        ("https://api.test@evil.test/v1/a", False),
        ("https://api.test.evil.test/v1/a", False),
        ("http://api.test/v1/a", False),
        ("https://api.test:8443/v1/a", False),
        ("https://api.test/v1/../admin", False),
        ("https://api.test/v1/%2e%2e/admin", False),
        ("https://api.test/v1/a evil.test", False),
        ("'https://api.test/v1/{a,b}'", False),
        ("-K x https://api.test/v1/a", False),
        ("-x evil.test https://api.test/v1/a", False),
        ("$url", False),
    ],
)
def test_addresses_narrow_a_rule(words: str, allowed: bool) -> None:
    """One reading of an address; what programs could read in two ways fits no rule."""
    rule = {"allow": "curl", "urls": ["https://api.test/v1/**"], "options": ["-s", "-S", "-f"]}
    policy = load_policy({"default": "deny", "commands": [rule]})

    assert policy.decide(f"curl {words}", **PLACE).allowed is allowed


def test_explain_names_each_part_its_rule_and_what_is_touched() -> None:
    """The answer of `openry policy explain`, whole."""
    found = explain("cat a.txt > b.txt; git push", ALL_BUT_RM | {"files": {"write": ["b.txt"]}},
                    cwd="/w", home="/h", path="/usr/bin:/bin")  # fmt: skip

    keys = ["verdict", "reason", "parts", "reads", "writes", "hosts", "instead"]
    assert list(found) == keys
    assert {tuple(part) for part in found["parts"]} == {("argv", "verdict", "rule", "reason")}
    assert found["verdict"] == "allow"
    assert [part["argv"] for part in found["parts"]] == [["cat", "a.txt"], ["git", "push"]]
    assert (found["reads"], found["writes"], found["hosts"]) == (["/w/a.txt"], ["/w/b.txt"], [])


LINES = yaml.safe_load(Path(__file__).with_name("lines.yaml").read_text("utf-8"))


def decided(group: dict[str, Any], kind: str) -> dict[str, str]:
    """The reason, empty where a line is allowed, of each line of that kind."""
    policy, environment = load_policy(group["policy"]), group.get("environment")
    verdicts = {line: policy.decide(line, **DEEPER, inherited=environment) for line in group[kind]}
    return {
        line: "" if verdict.decision is Decision.ALLOW else verdict.reason
        for line, verdict in verdicts.items()
    }


@pytest.mark.parametrize("group", LINES, ids=lambda one: one["name"])
def test_no_way_round_a_policy_is_open(group: dict[str, Any]) -> None:
    """What a policy forbids is refused in every disguise that somebody thought of."""
    assert [line for line, reason in decided(group, "bypass").items() if not reason] == []


@pytest.mark.parametrize("group", LINES, ids=lambda one: one["name"])
def test_an_everyday_line_is_not_refused(group: dict[str, Any]) -> None:
    """The same words where they mean nothing dangerous."""
    assert {line: reason for line, reason in decided(group, "harmless").items() if reason} == {}


EVERYDAY = yaml.safe_load(Path(__file__).with_name("everyday.yaml").read_text("utf-8"))
USUAL = {"HOME": "/h", "PATH": "/usr/bin:/bin", "USER": "agent", "LANG": "C.UTF-8"}


def refusals_of(policy: str, lines: list[str]) -> dict[str, str]:
    known = load_policy(policy)
    verdicts = {line: known.decide(line, **DEEPER, inherited=USUAL) for line in lines}
    return {line: one.reason for line, one in verdicts.items() if not one.allowed}


@pytest.mark.parametrize(("policy", "kinds"), [("strict", "reads"), ("moderate", "reads writes")])
def test_what_an_agent_sends_all_day_is_allowed(policy: str, kinds: str) -> None:
    """Reading under `strict`, and writing in the workspace under `moderate`."""
    assert refusals_of(policy, [line for kind in kinds.split() for line in EVERYDAY[kind]]) == {}


def test_strict_refuses_everyday_lines_that_write() -> None:
    """What writes, or runs what may, is no reading."""
    assert len(refusals_of("strict", EVERYDAY["writes"])) == len(EVERYDAY["writes"])


@pytest.mark.parametrize("one", EVERYDAY["refused"], ids=lambda one: one["line"])
def test_an_everyday_line_that_is_refused_can_be_written_otherwise(one: dict[str, str]) -> None:
    """Its reason is written down, and so is what to write instead."""
    policy = one.get("policy", "strict")

    assert one["because"]
    assert list(refusals_of(policy, [one["line"], one["allowed"]])) == [one["line"]]


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ('cd "$(git rev-parse --show-toplevel)" && cat a', True),
        ("cd $(git rev-parse --show-toplevel)/src && cat ../a", False),
        ('cd src && cd "$(git rev-parse --show-toplevel)" && cat a', True),
        ('cat "$(git rev-parse --show-toplevel)/../x"', False),
        ('cd .. && cd "$(git rev-parse --show-toplevel)" && cat a', False),
        ('cd "$(git -C .. rev-parse --show-toplevel)" && cat a', False),
        ('cd "$(git rev-parse --show-toplevel --git-dir)" && cat a', False),
    ],
)
def test_the_top_of_a_repository_is_looked_for(line: str, allowed: bool, tmp_path: Path) -> None:
    """`git rev-parse --show-toplevel` leads to the folder with `.git`, never further."""
    work = repository(tmp_path / "outer" / "work")
    (work / "src").mkdir()
    policy = load_policy("strict")

    assert policy.decide(line, cwd=str(work), path="/usr/bin:/bin", inherited={}).allowed is allowed


@pytest.mark.parametrize("config", ["[core]\n\tworktree = /etc\n", "[include]\n\tpath = x\n"])
def test_the_top_of_a_repository_may_be_elsewhere(config: str, tmp_path: Path) -> None:
    """Where settings may name another tree, or a repository lies above, nobody knows it."""
    line = 'cd "$(git rev-parse --show-toplevel)" && cat a'
    moved = repository(tmp_path / "moved", config)
    inner = repository(repository(tmp_path / "outer") / "inner")

    for work in (moved, inner):
        verdict = load_policy("strict").decide(line, cwd=str(work), path="/usr/bin:/bin")
        assert not verdict.allowed


def repository(folder: Path, config: str = "[core]\n\tbare = false\n") -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(config, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ('find $dir -type f; find "${dir}" -name a; sort $files', True),
        ("find $given -type f", False),
        ("find $DIR | while read -r line; do echo $((2)); done", True),
        ("find $OLDPWD -type f", False),
        ("find $BASH_COMMAND -type f", False),
        (". ./settings; find $DIR", False),
        ("read -adir < f; find $dir", False),
        ("read dir[0] < f; find $dir", False),
        ("echo {dir}>f; find $dir", True),
        ("echo $((dir=1)); find $dir", False),
        ("dir=$(cat f); find $dir", False),
        ("read dir < f; find $dir", False),
        ("for dir in *; do find $dir; done", False),
        (": ${dir=-delete}; find $dir", False),
        ("printf -v dir %s -delete; find $dir", False),
        ("$none rm x", False),
        ("timeout $none 5 rm x", False),
        ("r${none}m x", False),
        ("env $none rm x", False),
        ("x=rm bash -c '$x y'", False),
    ],
)
def test_a_variable_that_nobody_sets_is_empty(line: str, allowed: bool) -> None:
    """Where the whole environment is known, what is in neither it nor the line is no danger."""
    policy = load_policy(ALL_BUT_RM)

    assert policy.decide(line, **PLACE, inherited={"given": "-delete"}).allowed is allowed


CORPUS = Path(__file__).resolve().parents[4] / "shared" / "cases" / "agent-trajectories"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded commands are not here")
@pytest.mark.parametrize("part", [20, pytest.param(1, marks=pytest.mark.long)])
def test_hardly_a_recorded_command_that_only_reads_is_refused(part: int) -> None:
    """At most 2 in 100, and each for a reason that is written down."""
    found = refusals.judge(refusals.recorded(CORPUS)[::part])

    assert [one.command for one in found.refused if not one.because] == []
    assert found.only_read > 2000 / part
    assert found.percent <= 2


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded commands are not here")
def test_no_recorded_command_breaks_the_policy() -> None:
    """What seven models really wrote gets a verdict, every one of it."""
    policies = [load_policy(name) for name in ("strict", "moderate", "permissive")]
    lines = {
        action
        for path in CORPUS.glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
        for action in json.loads(line)["actions"]
    }

    assert len(lines) > 1000
    for policy in policies:
        assert all(policy.decide(line, **PLACE, inherited={}).reason for line in lines)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("cd src; make; cd ..; rm x", True),
        ("cd src\nls\ncd ..\nrm x", True),
        ("cd src && make && cd .. && rm x", True),
        ("cd src && rm ../x && cd - && rm x", True),
        ("cat src/../x m/../x", True),
        ("rm ../work/x", True),
        ("mkdir -p links; ln -s ../src/a links/a", True),
        ("cd gone; cd ..; rm x", False),
        ("rmdir src; cd src; cd ..; rm x", False),
        ("false && cd src; cd ..; rm x", False),
        ("cd src & cd ..; rm x", False),
        ("cd src | true; cd ..; rm x", False),
        ("(cd src); cd ..; rm x", False),
        ("! cd src && cd .. && rm x", False),
        ("f() { rm x; } && cd .. && f", False),
        ("trap 'rm x' EXIT; cd src; cd ../..", False),
        ("cd src && cd .. && cd .. && rm x", False),
        ("cd src; cd -; rm ../x", False),
        ("cd l && rm ../x", False),
        ("cd -P l; cd -P ..; rm x", False),
        ("rm l/../x", False),
        ("cat l/../x", False),
        ("cat l/../*.txt", False),
        ("cp l/../x y", False),
        ("ln -s . k; rm k/../x", False),
        ("ln -s . k; ln -s k/.. z", False),
        ("find src -execdir rm ../../x \\;", False),
        ("env -C .. rm x", False),
    ],
)
def test_where_a_command_runs_is_followed(line: str, allowed: bool, tmp_path: Path) -> None:
    """`cd` and links are taken for what they do: a file above the folder is never reached."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "l").symlink_to(".")
    (work / "m").symlink_to("src")
    policy = load_policy({"default": "allow", "files": {"read": ["**"], "write": ["**"]}})

    verdict = policy.decide(line, cwd=str(work), home="/h", path="/usr/bin:/bin", inherited={})

    assert verdict.allowed is allowed, verdict.reason


def test_a_pattern_gives_options_only_where_a_file_may_have_such_a_name(tmp_path: Path) -> None:
    """`sort *.txt` is free where nothing can be written and no file begins with a dash."""
    place = {"cwd": str(tmp_path), "path": "/usr/bin:/bin"}
    strict, writing = load_policy("strict"), load_policy({"default": "allow"})

    before = strict.decide("sort *.txt", **place), writing.decide("sort *.txt", **place)
    (tmp_path / "-o.txt").touch()
    after = strict.decide("sort *.txt", **place)

    assert [one.allowed for one in (*before, after)] == [True, False, False]
