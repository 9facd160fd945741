"""Prints the tables of the quality bench from the curves that run.py has kept:

  report.py --track A --of shirabe-gp [--dims 5] [--against optuna-gp ax] [--curves FOLDER …]

For every other method, over the curves (problem and seed) that both have: the mean of log10 regret
after 25, 50, 100 and 200 trials; the difference to --of, where less is better for --of; on how many
functions --of is better, and the exact two-sided Wilcoxon signed-rank test over functions, with
Holm's correction over the peers; and the group of functions in which --of does worst. A function
counts once: dimensions, instances, noises, seeds are averaged first. Regrets below 1e-8 are 1e-8.
Models have no known optimum: their regret is that over the best loss which anybody has found, in
units of what random search leaves after 25 trials.

On tables (track T) and what is like them there are few problems and many seeds of each, with the
same first points and results drawn alike, so that pairs of curves are what is counted: they are
ranked within their problem, and the ranks are added up.
"""

import argparse
import collections
import json
import math
import pathlib

import problems
import run

FLOOR = 1e-8
MODEL_FLOOR = 1e-3
# Few problems, many seeds of each.
BY_PAIRS = ("table-", "front-", "biobj-", "dtlz", "choice-", "sklearn-")
AT = (25, 50, 100, 200)


def read(folders, track):
    """method → {(problem, seed): row}"""
    methods = collections.defaultdict(dict)
    for folder in folders:
        for path in sorted((folder / track).glob("*.jsonl")):
            for line in path.read_text().splitlines():
                row = json.loads(line)
                methods[path.stem][row["problem"], row["seed"]] = row
    return methods


def chosen(methods, args):
    def wanted(name):
        match = problems.NAME.match(name)
        if match and args.dims and int(match[3]) not in args.dims:
            return False
        return not args.problems or any(part in name for part in args.problems)

    return {method: {key: row for key, row in rows.items() if wanted(key[0])}
            for method, rows in methods.items()}


def scales(methods):
    """model → (best loss ever, what random search leaves after 25 trials)"""
    best, left = collections.defaultdict(lambda: math.inf), collections.defaultdict(list)
    for method, rows in methods.items():
        for (name, _), row in rows.items():
            if not name.startswith(("sklearn-", "choice-")):
                continue
            best[name] = min(best[name], row["regret"][-1])
            if method == "random":
                left[name].append(value_at(row, 25))
    return {name: (best[name], sum(left[name]) / len(left[name]) - best[name])
            for name in best if left[name]}


def value_at(row, t):
    """The regret after t trials; None if the curve ends before."""
    if t > row["at"][-1]:
        return None
    return [r for at, r in zip(row["at"], row["regret"]) if at <= t][-1]


def log_regret(row, t, scale):
    value = value_at(row, t)
    if value is None:
        return None
    if row["problem"] in scale:
        best, width = scale[row["problem"]]
        return math.log10(max((value - best) / max(width, 1e-12), MODEL_FLOOR))
    return math.log10(max(value, FLOOR))


def by_unit(rows, keys, t, scale):
    """function → mean log10 regret of its instances and seeds"""
    values = collections.defaultdict(list)
    for key in keys:
        value = log_regret(rows[key], t, scale)
        if value is not None:
            values[problems.unit(key[0])].append(value)
    return {unit: sum(v) / len(v) for unit, v in values.items()}


def signed_ranks(differences):
    """Twice the mid-ranks of the sizes, with the signs; zeros are left out."""
    sizes = sorted(abs(d) for d in differences if d != 0)
    return [math.copysign(2 * sizes.index(abs(d)) + sizes.count(abs(d)) + 1, d)
            for d in differences if d != 0]


def wilcoxon(blocks):
    """The exact two-sided p of the signed-rank test; ties share ranks, and ranks are those within
    a block of differences."""
    signed = [int(rank) for block in blocks for rank in signed_ranks(block)]
    if not signed:
        return 1.0
    ways = collections.Counter({0: 1})
    for rank in map(abs, signed):
        more = collections.Counter(ways)
        for total, count in ways.items():
            more[total + rank] += count
        ways = more
    positive = sum(rank for rank in signed if rank > 0)
    tail = min(positive, sum(map(abs, signed)) - positive)
    p = 2 * sum(count for total, count in ways.items() if total <= tail) / 2 ** len(signed)
    return min(1.0, p)


def holm(ps):
    """Adjusted values, in the order given."""
    adjusted, least = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = least
    return adjusted


def pairs(ours, theirs, keys, t, scale):
    """For each problem: the differences of the curves from the same seed."""
    blocks = collections.defaultdict(list)
    for key in sorted(keys):
        values = [log_regret(rows[key], t, scale) for rows in (ours, theirs)]
        if None not in values:
            blocks[key[0]].append(values[0] - values[1])
    return list(blocks.values())


def worst_group(differences):
    groups = collections.defaultdict(list)
    for unit, difference in differences.items():
        groups[problems.group(unit)].append(difference)
    means = {name: sum(v) / len(v) for name, v in groups.items()}
    worst = max(means, key=means.__getitem__)
    return f"{means[worst]:+.2f} {worst}"


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def compare(methods, of, t, scale):
    """One entry a peer; see table."""
    entries = []
    for peer, rows in methods.items():
        keys = rows.keys() & methods[of].keys()
        theirs = by_unit(rows, keys, t, scale)
        ours = by_unit(methods[of], keys, t, scale)
        both = sorted(theirs.keys() & ours.keys())
        if peer == of or not both:
            continue
        differences = {unit: ours[unit] - theirs[unit] for unit in both}
        blocks = [list(differences.values())]
        if all(unit.startswith(BY_PAIRS) for unit in both):
            blocks = pairs(methods[of], rows, keys, t, scale)
        counted = [d for block in blocks for d in block]
        entries.append({
            "peer": peer, "n": len(counted), "curves": len(keys),
            "ours": mean(ours[u] for u in both), "theirs": mean(theirs[u] for u in both),
            "difference": mean(differences.values()), "wins": sum(d < 0 for d in counted),
            "ties": sum(d == 0 for d in counted), "p": wilcoxon(blocks),
            "group": worst_group(differences)})
    for entry, p in zip(entries, holm([e["p"] for e in entries])):
        entry["holm"] = p
    return sorted(entries, key=lambda e: e["theirs"])


def ranks(methods, of, t, scale):
    """method → mean rank, over the curves that all have which have most of those of `of`."""
    values = {m: {key: log_regret(row, t, scale) for key, row in rows.items()
                  if key in methods[of] and t <= row["at"][-1]} for m, rows in methods.items()}
    values = {m: v for m, v in values.items() if 2 * len(v) > len(values[of])}
    keys = set.intersection(*map(set, values.values())) if of in values else set()
    totals = collections.Counter()
    for key in keys:
        for method in values:
            less = sum(v[key] < values[method][key] for v in values.values())
            same = sum(v[key] == values[method][key] for v in values.values())
            totals[method] += less + (same + 1) / 2
    return {m: totals[m] / len(keys) for m in values} if keys else {}


def table(methods, of, t, scale):
    entries = compare(methods, of, t, scale)
    if not entries:
        return
    rank = ranks(methods, of, t, scale)
    ms = {m: mean(row["ms"] for row in rows.values()) for m, rows in methods.items() if rows}
    place = f", mean rank {rank[of]:.2f} of {len(rank)}" if rank else ""
    print(f"\n**{of}** after {t} trials{place}, {ms[of]:.3g} ms a suggestion\n")
    print("| against | functions (curves) | log10 regret | its | Δ | better on | p | Holm "
          "| worst group Δ | its rank | its ms |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for e in entries:
        better = f"{e['wins']} of {e['n']}" + (f", {e['ties']} even" if e["ties"] else "")
        its_rank = f"{rank[e['peer']]:.2f}" if e["peer"] in rank else ""
        print(f"| {e['peer']} | {e['n']} ({e['curves']}) | {e['ours']:.2f} | {e['theirs']:.2f} "
              f"| **{e['difference']:+.2f}** | {better} | {e['p']:.2g} | {e['holm']:.2g} "
              f"| {e['group']} | {its_rank} | {ms[e['peer']]:.3g} |")


def brief(methods, of, at, scale):
    """One table: a row a peer, a column a number of trials."""
    columns = {t: {e["peer"]: e for e in compare(methods, of, t, scale)} for t in at}
    columns = {t: column for t, column in columns.items() if column}
    peers = sorted({peer for column in columns.values() for peer in column},
                   key=lambda peer: [c[peer]["theirs"] for c in columns.values() if peer in c])
    print(f"\n| {of} against | functions (curves) | "
          + " | ".join(f"after {t}" for t in columns) + " | worst group |")
    print("| --- | ---: |" + " --- |" * (len(columns) + 1))
    for peer in peers:
        entries = [column.get(peer) for column in columns.values()]
        last = [e for e in entries if e][-1]
        cells = [f"**{e['difference']:+.2f}** {e['wins']}/{e['n'] - e['ties']} p={e['holm']:.2g}"
                 if e else "" for e in entries]
        print(f"| {peer} | {last['n']} ({last['curves']}) | " + " | ".join(cells)
              + f" | {last['group']} |")


def details(methods, of, peer, scale):
    """Function by function, to see where the difference comes from."""
    keys = methods[of].keys() & methods[peer].keys()
    print(f"\nlog10 regret of {of} less that of {peer}, by function\n")
    print("| function | " + " | ".join(map(str, AT)) + " |\n| --- |" + " ---: |" * len(AT))
    columns = [(by_unit(methods[of], keys, t, scale), by_unit(methods[peer], keys, t, scale))
               for t in AT]
    for unit in sorted(columns[0][0]):
        cells = [f"{ours[unit] - theirs[unit]:+.2f}" if unit in ours and unit in theirs else ""
                 for ours, theirs in columns]
        print(f"| {unit} | " + " | ".join(cells) + " |")


def parse():
    parser = argparse.ArgumentParser(description="tables of the quality bench")
    parser.add_argument("--track", choices=problems.TRACKS, default="A")
    parser.add_argument("--of", default="shirabe-gp", help="the method that is judged")
    parser.add_argument("--against", nargs="*", help="only these methods")
    parser.add_argument("--dims", type=lambda text: [int(d) for d in text.split(",")])
    parser.add_argument("--problems", nargs="*", help="parts of names: f003 svm -m30")
    parser.add_argument("--at", type=lambda text: [int(t) for t in text.split(",")], default=AT)
    parser.add_argument("--brief", action="store_true",
                        help="one table: Δ, functions on which --of is better, Holm's p")
    parser.add_argument("--by-function", metavar="METHOD")
    parser.add_argument("--curves", type=pathlib.Path, action="append",
                        help="folders; by default those of run.py")
    return parser.parse_args()


def main():
    args = parse()
    methods = chosen(read(args.curves or [run.KEPT, run.OWN], args.track), args)
    scale = scales(methods)
    if args.against:
        methods = {m: rows for m, rows in methods.items() if m in [*args.against, args.of]}
    if not methods.get(args.of):
        raise SystemExit(f"no curves of {args.of} on track {args.track}; there are: "
                         f"{', '.join(m for m, rows in methods.items() if rows)}")
    methods = {m: rows for m, rows in methods.items() if rows}
    if args.brief:
        brief(methods, args.of, args.at, scale)
    else:
        for t in args.at:
            table(methods, args.of, t, scale)
    if args.by_function:
        details(methods, args.of, args.by_function, scale)


if __name__ == "__main__":
    main()
