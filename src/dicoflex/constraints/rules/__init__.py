"""Relations between features as text: a small expression language that is parsed by hand and never run as code.

A rule is a condition on one row:

    duration_late <= duration_total
    if married == 'yes' then household >= 2
    20 <= hours <= 50 and housing in ['own', 'rent']
    `capital gain` + 2 * bonus >= 100 or tenure is not missing
    age - was.age >= 2 * (education - was.education)
    if changed(address) then years_at_address <= 1

Values are numbers, text in single or double quotes (a quote inside is doubled), `true` and `false`, names of features,
and `+ - * /` of numbers. A name that is no plain word, or a word of the language, stands in backticks (a backtick
inside is doubled). `was.age` is the query's age, `changed(age)` says that the two differ, `min(a, b)` and `max(a, b)`
are the smaller and the greater of two numbers, and `if A then a else b` is one of two values. Conditions are
`< <= > >= == !=` (which may be chained), `in` and `not in` with a list of literals, `is missing`, `is not missing`, and
`and`, `or`, `not`, `if A then B` of conditions. Precedence is Python's; `if` binds least.

What a rule means:

- A comparison or `in` that touches a missing value is false, and so is one that divides by zero or whose arithmetic
  has no result; `not` flips it as any other.
- Numbers compare with numbers. Levels compare for equality, by value: the level 1 equals the literal 1. Booleans
  compare for equality with true and false, and with 1 and 0.
- An ordinal also compares by `< <= > >=` with one of its levels, or with what it was, by the order of its levels. In
  arithmetic, and compared with what was calculated, it counts by rank: its lowest level is 0.
- `changed(x)` holds where x differs from the query's; missing equals missing.
- `if A then B` is `not A or B`.
"""
