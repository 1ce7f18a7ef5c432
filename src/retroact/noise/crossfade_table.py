"""What is shipped about crossfade noise (`noise.faded`). Literals alone, so that any program can read them.

Each number belongs to the integers of the weights, the spacings and the widths together. The squared sensitivity of a
row, and of one end, is the largest v' S^-1 v over all of its patterns v, where S is the covariance of the noise in
units of the fresh noise. Two programs that share no code compute it over all intervals, one of them as a strict bound
(certificates/README.md, docs/proofs.md 3d). What is shipped is that plus 1e-4, rounded up to four digits.
"""

WEIGHTS_SHA256 = "1d0c34c686577a86aef9c081dfe411f35a76d435397055df89061217f9296574"
"""The digest of the 1,025 weights as decimals with commas between them: 0,9,...,4096."""

KERNEL = "6"
"""At least the square of every Gram-Schmidt length of the node values that no published round can see, in units of the
fresh noise, with coarse nodes on the integers: below 5.78 in all rows."""

ROWS = {
    # m: (over all intervals of 2^m - 1 rounds, with both ends; over all that never end)
    1: ("1.0001", "1.0001"),
    2: ("0.9181", "0.9181"),
    3: ("1.4470", "1.3419"),
    4: ("1.6354", "1.4704"),
    5: ("2.2692", "1.8642"),
    6: ("2.1914", "1.8214"),
    7: ("2.8142", "2.1603"),
    8: ("2.7390", "2.1163"),
    9: ("3.3659", "2.4392"),
    10: ("3.2838", "2.3948"),
    11: ("3.9110", "2.7116"),
    12: ("3.8276", "2.6682"),
    13: ("4.4552", "2.9829"),
    14: ("4.3718", "2.9409"),
    15: ("5.0007", "3.2559"),
    16: ("4.9163", "3.2132"),
    17: ("5.5451", "3.5277"),
}

WINDOWS = {
    # b: over all intervals of at most 2^b rounds, at any place of an endless process
    2: "1.4144",
    3: "2.0311",
    4: "1.9585",
    5: "2.5830",
    6: "2.5046",
    7: "3.1322",
    8: "3.0478",
    9: "3.6756",
    10: "3.5914",
}
