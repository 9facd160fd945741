"""Writes tests/testdata/schedule/starts.txt: when schedules are due by croniter, in zones with
and without changes of clocks. Where croniter and Kubernetes' CronJob disagree (what a change of
clocks leaves out, or repeats, and */n as a restriction of days) nothing is taken from it.

  python3 -m venv /tmp/v && /tmp/v/bin/pip install croniter==7.0.0
  /tmp/v/bin/python tests/schedule/make_oracle.py > tests/testdata/schedule/starts.txt
"""
import datetime as dt
import random
import zoneinfo

from croniter import croniter

random.seed(7)
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
FIXED = ["0 0 * * *", "*/15 * * * *", "30 2 * * 1-5", "0 0 29 2 *", "0 0 31 * *", "0 12 1,15 * *",
         "5 4 * * sun", "0 22 * * 1-5", "23 0-20/2 * * *", "0 0,12 1 */2 *", "0 0 13 * 5",
         "0 4 8-14 * *", "15 14 1 jan *", "59 23 31 12 *", "@hourly", "@weekly", "@monthly"]


def draw():
    def field(low, high, step=True):
        kind = random.randrange(5)
        if kind == 0:
            return "*"
        a, b = sorted((random.randint(low, high), random.randint(low, high)))
        if kind == 1 and step:
            return f"*/{random.randint(2, max(2, (high - low) // 2))}"
        if kind == 2 and a < b:  # croniter takes 0-0 for any
            return f"{a}-{b}"
        if kind == 3:
            return ",".join(str(v) for v in sorted(random.sample(range(low, high + 1), 3)))
        return str(a)

    return " ".join([field(0, 59), field(0, 23), field(1, 28, False), field(1, 12),
                     field(0, 6, False)])


for text in FIXED + [draw() for _ in range(150)]:
    zone = random.choice(ZONES)
    tz = zoneinfo.ZoneInfo(zone)
    start = dt.datetime.fromtimestamp(random.randint(1_600_000_000, 1_900_000_000), tz)
    # Seen in UTC, so that croniter's own rules for changes of clocks play no part; the times are
    # then read as local ones, and those that are not exactly one instant are left out.
    naive = start.replace(tzinfo=None)
    times = croniter(text, naive)
    out = []
    for _ in range(8):
        local = times.get_next(dt.datetime)
        first, second = (local.replace(tzinfo=tz, fold=fold) for fold in (0, 1))
        back = dt.datetime.fromtimestamp(first.timestamp(), tz).replace(tzinfo=None)
        if first.utcoffset() != second.utcoffset() or back != local:
            break
        out.append(int(first.timestamp()))
    ambiguous = start.replace(fold=0).utcoffset() != start.replace(fold=1).utcoffset()
    if out and not ambiguous:
        print("|".join([text, zone, str(int(start.timestamp())), " ".join(map(str, out))]))
