#!/usr/bin/env python3
"""Prints the number of rows, empty cells, and the least and greatest value of each column."""
import csv
import sys

with open(sys.argv[1], newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
print(f"rows: {len(rows)}")
for column in rows[0] if rows else []:
    values = [row[column] for row in rows if row[column]]
    print(f"{column}: {len(rows) - len(values)} empty, {min(values, default='')} to {max(values, default='')}")
