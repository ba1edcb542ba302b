"""Writes numbered rows into PostgreSQL for as long as it runs, and notes each row that was acknowledged, with its time."""

import time

import psycopg2

number = 0
connection = None
with open("/tmp/acknowledged", "a", buffering=1) as acknowledged:
    while True:
        number += 1
        try:
            if connection is None:
                connection = psycopg2.connect(
                    host="pg", user="postgres", connect_timeout=2, tcp_user_timeout=3000, options="-c statement_timeout=5000"
                )
                connection.autocommit = True
                cursor = connection.cursor()
                cursor.execute("create table if not exists rows (n bigint primary key)")
            cursor.execute("insert into rows values (%s)", (number,))
            acknowledged.write(f"{number} {time.time():.3f}\n")
        except psycopg2.Error:
            if connection is not None:
                connection.close()
            connection = None
            time.sleep(0.1)
        time.sleep(0.01)
