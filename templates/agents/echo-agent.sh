#!/bin/sh
# An agent without a model: from the line that begins with `Task: ` on, it does what each line says.
#   run COMMAND          openry -c COMMAND
#   call NAME JSON       openry --call NAME --args JSON
#   report STATUS JSON   openry --status STATUS --payload JSON
#   self COMMAND         a command of its own, past the hand
#   exit CODE            end at once
# Every other line is printed. It ends when the hand tells it to stop, unless it was told `ignore`.
acting= ignore=
hand() {
    answer=$(openry "$@")
    printf '%s\n' "$answer"
    case $answer in *'"stdout": "User requested immediate stop'*)
        [ -n "$ignore" ] || { openry --status cancelled; exit 0; } ;;
    esac
}
while IFS= read -r line || [ -n "$line" ]; do
    case $line in 'Task: '*) acting=yes line=${line#Task: } ;; esac
    [ -n "$acting" ] || continue
    rest=${line#* }
    case $line in
        'run '*) hand -c "$rest" ;;
        'call '*) hand --call "${rest%% *}" --args "${rest#* }" ;;
        'report '*' '*) hand --status "${rest%% *}" --payload "${rest#* }" ;;
        'report '*) hand --status "$rest" ;;
        'self '*) eval "$rest" ;;
        'ignore') ignore=yes ;;
        'exit '*) exit "$rest" ;;
        *) printf '%s\n' "$line" ;;
    esac
done
