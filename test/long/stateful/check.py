"""Prints how many rows were acknowledged, which of them are missing, and the longest time without one since a moment."""

import json
import sys

import psycopg2

since = float(sys.argv[1])
with open("/tmp/acknowledged") as file:
    lines = [line.split() for line in file.read().splitlines()]
# The last line may be half written.
rows = [(int(line[0]), float(line[1])) for line in lines[:-1]]
connection = psycopg2.connect(host="pg", user="postgres", connect_timeout=5)
cursor = connection.cursor()
cursor.execute("select n from rows")
present = {n for (n,) in cursor.fetchall()}
missing = [n for n, _ in rows if n not in present]
times = [since] + [at for _, at in rows if at > since]
gap = max((after - before for before, after in zip(times, times[1:])), default=0)
print(json.dumps({"acknowledged": len(rows), "missing": missing[:20], "longestGap": round(gap, 3)}))
