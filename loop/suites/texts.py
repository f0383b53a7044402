"""Chores with plain texts and lists, in English and Chinese."""

# ruff: noqa: E501  a sentence stands in one line
from __future__ import annotations

from random import Random

from loop.suites.making import CITIES, FIRST, FRUIT, WORDS, Task, kind, lines, mix, names, sentence


@kind("text")
def mention(r: Random) -> Task:
    w = r.choice(["refund", "delivery", "invoice", "garden"])
    t = mix(r, w)
    s = r.choice(
        [
            f"Pull every line mentioning {w} out of letters.txt and put them in picked.txt",
            f"I need all the lines from letters.txt that talk about {w}. Write them to picked.txt.",
        ]
    )
    return Task(s, {"letters.txt": lines(t)}, {"picked.txt": lines(x for x in t if w in x)})


@kind("text")
def not_contain(r: Random) -> Task:
    w = r.choice(["draft", "secret", "todo"])
    t = mix(r, w)
    s = r.choice(
        [
            f"From notes.txt keep only the lines that do not contain {w} and write them to public.txt",
            f"Save those lines of notes.txt which don't mention '{w}' to public.txt",
        ]
    )
    return Task(s, {"notes.txt": lines(t)}, {"public.txt": lines(x for x in t if w not in x)})


@kind("text")
def either(r: Random) -> Task:
    a, b = r.sample(["honey", "soap", "tea", "rice"], 2)
    t = mix(r, a, other=b)
    t += [f"only {sentence(r)}"]
    s = r.choice(
        [
            f"Copy the lines of stock.txt with either {a} or {b} in them to both.txt",
            f"Put every line from stock.txt that contains '{a}' or '{b}' into both.txt",
        ]
    )
    return Task(s, {"stock.txt": lines(t)}, {"both.txt": lines(x for x in t if a in x or b in x)})


@kind("text")
def count_nocase(r: Random) -> Task:
    w = r.choice(["warning", "failed"])
    t = [*mix(r, w), f"a {w.upper()} here", f"{w.title()} again"]
    r.shuffle(t)
    s = r.choice(
        [
            f"How many lines of events.txt mention {w}, ignoring case? Put the number in n.txt",
            f"Count the lines in events.txt that contain '{w}', upper or lower case doesn't matter, and store the number in n.txt",
        ]
    )
    return Task(s, {"events.txt": lines(t)}, {"n.txt": str(sum(w in x.lower() for x in t))})


@kind("text")
def whole_word(r: Random) -> Task:
    w = r.choice(["cat", "art"])
    t = [*mix(r, w), f"see the {w}alog of things", f"some {w}isan here", f"con{w}enate it"]
    r.shuffle(t)
    s = f"Save the lines of pets.txt that contain the exact word '{w}' to hits.txt"
    return Task(s, {"pets.txt": lines(t)}, {"hits.txt": lines(x for x in t if w in x.split())})


@kind("text")
def starts_with(r: Random) -> Task:
    t = (
        [sentence(r) for _ in range(5)]
        + ["- " + sentence(r) for _ in range(4)]
        + [sentence(r) + " - " + sentence(r)]
    )
    r.shuffle(t)
    s = r.choice(
        [
            "Save only the lines of memo.txt that start with '- ' to bullets.txt",
            "Take the lines beginning with '- ' from memo.txt and write them into bullets.txt",
        ]
    )
    return Task(
        s, {"memo.txt": lines(t)}, {"bullets.txt": lines(x for x in t if x.startswith("- "))}
    )


@kind("text")
def first_matching(r: Random) -> Task:
    w = r.choice(["honey", "bread"])
    t = [
        x
        for i in range(6)
        for x in (sentence(r).replace(w, "x"), sentence(r).replace(w, "x") + " " + w)
    ]
    n = r.randint(2, 4)
    s = f"Write the first {n} lines of shop.txt that contain '{w}' to few.txt"
    return Task(s, {"shop.txt": lines(t)}, {"few.txt": lines([x for x in t if w in x][:n])})


@kind("text")
def line_span(r: Random) -> Task:
    t = [f"step {i}: {sentence(r)}" for i in range(1, 13)]
    a = r.randint(2, 5)
    b = a + r.randint(2, 4)
    s = r.choice(
        [
            f"Copy lines {a} to {b} of manual.txt into part.txt",
            f"I only want line {a} through line {b} of manual.txt, in part.txt",
        ]
    )
    return Task(s, {"manual.txt": lines(t)}, {"part.txt": lines(t[a - 1 : b])})


@kind("text")
def numbers_between(r: Random) -> Task:
    t = [*r.sample(range(1, 40), 14), 10, 20]
    r.shuffle(t)
    s = "Save the numbers in values.txt that are between 10 and 20 to mid.txt"
    return Task(s, {"values.txt": lines(t)}, {"mid.txt": lines(x for x in t if 10 <= x <= 20)})


@kind("text")
def sort_down(r: Random) -> Task:
    t = r.sample(CITIES + FIRST, 9)
    s = r.choice(
        [
            "Arrange the names in towns.txt from Z to A and save as back.txt",
            "Sort towns.txt in reverse alphabetical order into back.txt",
        ]
    )
    return Task(s, {"towns.txt": lines(t)}, {"back.txt": lines(sorted(t, reverse=True))})


@kind("text")
def sort_numbers(r: Random) -> Task:
    t = r.sample(range(3, 2000), 9)
    s = r.choice(
        [
            "Put the numbers in scores.txt in order, biggest first, and save them to ranked.txt",
            "Order the numbers of scores.txt from largest to smallest; write to ranked.txt",
        ]
    )
    return Task(s, {"scores.txt": lines(t)}, {"ranked.txt": lines(sorted(t, reverse=True))})


@kind("text")
def by_last_name(r: Random) -> Task:
    t = names(r, 8)
    return Task(
        "Sort guests.txt by last name and save it to seating.txt",
        {"guests.txt": lines(t)},
        {"seating.txt": lines(sorted(t, key=lambda x: x.split()[-1]))},
    )


@kind("text")
def distinct_count(r: Random) -> Task:
    t = [r.choice(FRUIT) for _ in range(14)]
    s = r.choice(
        [
            "How many different fruits are in basket.txt? Write the answer to kinds.txt",
            "Count the distinct lines of basket.txt and put the number into kinds.txt",
        ]
    )
    return Task(s, {"basket.txt": lines(t)}, {"kinds.txt": str(len(set(t)))})


@kind("text")
def at_least_twice(r: Random) -> Task:
    t = [r.choice(FRUIT) for _ in range(9)] + ["apple", "apple", "kiwi"]
    r.shuffle(t)
    seen = [x for x in dict.fromkeys(t) if t.count(x) > 1]
    s = r.choice(
        [
            "Write each line that appears at least twice in basket.txt to repeats.txt, once each",
            "Which lines occur more than once in basket.txt? List each of them once in repeats.txt",
        ]
    )
    return Task(s, {"basket.txt": lines(t)}, {"repeats.txt": lines(seen)})


@kind("text")
def most_common(r: Random) -> Task:
    w = r.choice(FRUIT)
    t = [w] * 4 + r.sample([f for f in FRUIT if f != w], 5) * 2
    r.shuffle(t)
    return Task(
        "Which line occurs most often in votes.txt? Save just that line to winner.txt",
        {"votes.txt": lines(t)},
        {"winner.txt": w},
    )


@kind("text")
def first_word(r: Random) -> Task:
    t = [sentence(r) for _ in range(7)]
    s = r.choice(
        [
            "Take the first word of every line in poem.txt and save them to starts.txt",
            "Write just the first word of each line of poem.txt into starts.txt",
        ]
    )
    return Task(s, {"poem.txt": lines(t)}, {"starts.txt": lines(x.split()[0] for x in t)})


@kind("text")
def replace(r: Random) -> Task:
    a, b = r.sample(["Monday", "Tuesday", "Friday"], 2)
    t = [f"meet on {a} {sentence(r)}" if r.random() < 0.5 else sentence(r) for _ in range(7)] + [
        f"{a} or {a}"
    ]
    s = r.choice(
        [
            f"Change every '{a}' in plan.txt to '{b}' and save the result as plan2.txt",
            f"In plan.txt, swap {a} for {b}; the new text goes into plan2.txt",
        ]
    )
    return Task(s, {"plan.txt": lines(t)}, {"plan2.txt": lines(t).replace(a, b)})


@kind("text")
def strip_out(r: Random) -> Task:
    u = r.choice([" kg", " EUR"])
    t = [f"{r.choice(FRUIT)} {r.randint(1, 90)}{u}" for _ in range(7)]
    return Task(
        f"Remove the text '{u}' from every line of weights.txt and save it as plain.txt",
        {"weights.txt": lines(t)},
        {"plain.txt": lines(t).replace(u, "")},
    )


@kind("text")
def prefix(r: Random) -> Task:
    t = r.sample(FRUIT, 6)
    p = r.choice(["* ", "> ", "- "])
    s = r.choice(
        [
            f"Put '{p}' in front of every line of shopping.txt and save as list.md",
            f"Add '{p}' to the start of each line in shopping.txt, output to list.md",
        ]
    )
    return Task(s, {"shopping.txt": lines(t)}, {"list.md": lines(p + x for x in t)})


@kind("text")
def comma_list(r: Random) -> Task:
    t = r.sample(FRUIT, 6)
    s = r.choice(
        [
            "Put all lines of shopping.txt on one line separated by commas and save to one.txt",
            "Turn the lines in shopping.txt into a single line with ',' between them, in one.txt",
        ]
    )
    return Task(s, {"shopping.txt": lines(t)}, {"one.txt": ",".join(t)})


@kind("text")
def only_in_a(r: Random) -> Task:
    a = r.sample(FIRST, 9)
    b = r.sample(a, 4) + r.sample([x for x in FIRST if x not in a], 3)
    r.shuffle(b)
    s = r.choice(
        [
            "Write the lines of invited.txt that are not in came.txt to absent.txt",
            "Who is in invited.txt but not in came.txt? Save those names to absent.txt",
        ]
    )
    return Task(
        s,
        {"invited.txt": lines(a), "came.txt": lines(b)},
        {"absent.txt": lines(x for x in a if x not in b)},
    )


@kind("text")
def in_both(r: Random) -> Task:
    a = r.sample(FIRST, 9)
    b = r.sample(a, 4) + r.sample([x for x in FIRST if x not in a], 3)
    r.shuffle(b)
    s = r.choice(
        [
            "Which names are in both monday.txt and tuesday.txt? Put them into always.txt",
            "Save the lines that monday.txt and tuesday.txt share to always.txt",
        ]
    )
    return Task(
        s,
        {"monday.txt": lines(a), "tuesday.txt": lines(b)},
        {"always.txt": lines(x for x in a if x in b)},
    )


@kind("text")
def how_long(r: Random) -> Task:
    t = [sentence(r) for _ in range(r.randint(4, 9))]
    s, e = r.choice(
        [
            (
                "How many words does story.txt have? Store the number in size.txt",
                len(" ".join(t).split()),
            ),
            ("Tell me the number of lines in story.txt, in size.txt", len(t)),
        ]
    )
    return Task(s, {"story.txt": lines(t)}, {"size.txt": str(e)})


@kind("text")
def longest(r: Random) -> Task:
    t = [sentence(r, 5) for _ in range(6)] + [" ".join(r.sample(WORDS, 12))]
    r.shuffle(t)
    return Task(
        "Find the longest line of quotes.txt and write it to long.txt",
        {"quotes.txt": lines(t)},
        {"long.txt": max(t, key=len)},
    )


@kind("text")
def longer_than(r: Random) -> Task:
    t = [sentence(r, 9) for _ in range(12)] + ["tiny", " ".join(WORDS[:9])]
    return Task(
        "Keep the lines of quotes.txt that are longer than 30 characters in long.txt",
        {"quotes.txt": lines(t)},
        {"long.txt": lines(x for x in t if len(x) > 30)},
    )


@kind("text")
def emails(r: Random) -> Task:
    ms = [
        f"{a.lower()}@{c.lower()}.example.org"
        for a, c in zip(r.sample(FIRST, 4), CITIES, strict=False)
    ]
    t = [f"{sentence(r)} {m} {sentence(r)}" for m in ms] + [sentence(r)]
    s = r.choice(
        [
            "Collect all e-mail addresses found in inbox.txt into mails.txt",
            "Extract the email addresses from inbox.txt and save them to mails.txt",
        ]
    )
    return Task(s, {"inbox.txt": lines(t)}, {"mails.txt": lines(ms)})


@kind("text")
def blanks(r: Random) -> Task:
    t = [r.choice([sentence(r), sentence(r), ""]) for _ in range(10)] + ["", sentence(r), ""]
    s = r.choice(
        [
            "Take the blank lines out of page.txt and save what remains to tight.txt",
            "page.txt has a lot of empty lines. Save it without them as tight.txt",
        ]
    )
    return Task(s, {"page.txt": lines(t)}, {"tight.txt": lines(x for x in t if x)})


@kind("text")
def total(r: Random) -> Task:
    t = [r.randint(1, 500) for _ in range(8)]
    s, e = r.choice(
        [
            ("Add up the numbers in bills.txt and put the result in total.txt", sum(t)),
            ("What is the highest number in bills.txt? Write it to total.txt", max(t)),
            ("What do the numbers in bills.txt sum to? Save that to total.txt", sum(t)),
            ("Save the smallest number of bills.txt to total.txt", min(t)),
        ]
    )
    return Task(s, {"bills.txt": lines(t)}, {"total.txt": str(e)})


@kind("text")
def trailing(r: Random) -> Task:
    t = [sentence(r) for _ in range(6)]
    return Task(
        "Lower-case everything in shout.txt and store it in calm.txt",
        {"shout.txt": lines(x.upper() for x in t)},
        {"calm.txt": lines(t)},
    )


@kind("chinese")
def zh_find(r: Random) -> Task:
    w = r.choice(["超时", "失败", "重启"])
    t = [f"{i} 服务 {w if r.random() < 0.4 else '正常'}" for i in range(9)] + [f"9 数据库 {w}"]
    s = r.choice(
        [f"找出 run.log 中包含“{w}”的行，保存到 out.txt", f"把 run.log 里有“{w}”的行写入 out.txt"]
    )
    return Task(s, {"run.log": lines(t)}, {"out.txt": lines(x for x in t if w in x)})


@kind("chinese")
def zh_without(r: Random) -> Task:
    w = "调试"
    t = [
        f"{i} {r.choice(['调试', '信息', '错误'])} {r.choice(['启动', '停止'])}" for i in range(9)
    ] + ["10 调试 完"]
    s = r.choice(
        [
            f"删除 run.log 中含有“{w}”的行，其余的存到 out.txt",
            f"把 run.log 中不包含“{w}”的行保存到 out.txt",
        ]
    )
    return Task(s, {"run.log": lines(t)}, {"out.txt": lines(x for x in t if w not in x)})


@kind("chinese")
def zh_count(r: Random) -> Task:
    t = [f"{i} {r.choice(['错误', '正常'])}" for i in range(r.randint(6, 12))] + ["99 错误"]
    s, e = r.choice(
        [
            ("统计 run.log 中包含“错误”的行数，写到 n.txt", sum("错误" in x for x in t)),
            ("run.log 一共有多少行？把数字写到 n.txt", len(t)),
        ]
    )
    return Task(s, {"run.log": lines(t)}, {"n.txt": str(e)})


@kind("chinese")
def zh_sort(r: Random) -> Task:
    t = r.sample(range(1, 999), 8)
    s, e = r.choice(
        [
            ("把 nums.txt 里的数字从大到小排序，保存到 out.txt", sorted(t, reverse=True)),
            ("把 nums.txt 按数字大小升序排列，结果存入 out.txt", sorted(t)),
        ]
    )
    return Task(s, {"nums.txt": lines(t)}, {"out.txt": lines(e)})


@kind("chinese")
def zh_replace(r: Random) -> Task:
    t = [f"{r.choice(['北京', '上海'])} {r.choice(FRUIT)}" for _ in range(7)] + ["北京 北京"]
    return Task(
        "把 addr.txt 中的“北京”全部替换成“南京”，保存为 out.txt",
        {"addr.txt": lines(t)},
        {"out.txt": lines(t).replace("北京", "南京")},
    )


@kind("chinese")
def zh_two(r: Random) -> Task:
    t = [r.choice(FRUIT) for _ in range(9)]
    u = sorted(set(t))
    return Task(
        "把 fruit.txt 去重并排序后保存到 u.txt，再统计 u.txt 的行数写入 n.txt",
        {"fruit.txt": lines(t)},
        {"u.txt": lines(u), "n.txt": str(len(u))},
    )
