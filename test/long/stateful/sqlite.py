"""Writes numbered rows into a SQLite database and prints each number once its transaction is committed."""

import sqlite3
import time

database = sqlite3.connect("/data/rows.db", isolation_level=None)
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = full")
database.execute("create table if not exists rows (n integer primary key)")
(number,) = database.execute("select coalesce(max(n), 0) from rows").fetchone()
while True:
    number += 1
    database.execute("insert into rows values (?)", (number,))
    print(number, flush=True)
    time.sleep(0.02)
