"""The words of the page of an audit that are the same for all."""

from __future__ import annotations

from .report import Outcome
from .result import Verdict

TITLES: dict[Outcome, str] = {
    "passed": "No violation found.",
    "violation": "A promise is broken.",
    "void": "This audit says nothing.",
}
VERDICTS: dict[Outcome, str] = {"passed": "✔ Passed", "violation": "✘ Violation", "void": "Void"}
LEADS: dict[Outcome, str] = {
    "passed": "No test found more than what is claimed, and every bug that was planted on purpose was caught. Tests "
    "that were inconclusive or do not apply are counted below and say nothing. This is evidence, not a proof: see "
    "“What this does not show”.",
    "violation": "At least one test found more than what is claimed allows. What it found is below, with a history "
    "that shows it where there is one. Publish nothing more from this stream until it is explained.",
    "void": "No violation was found, but at least one test missed a bug that was planted for it, or no test passed: "
    "all were inconclusive or do not apply. A test that cannot see a bug says nothing when it sees none. Run the audit "
    "again with more effort.",
}
ORDER: tuple[Verdict, ...] = ("passed", "violation", "inconclusive", "not applicable")

ADAPTIVE = "attackers who choose later additions and deletions after seeing earlier answers, too"
FIXED = "attackers who fix all additions and deletions beforehand"

TRIED = (
    "All histories are generated and all keys are thrown away: no record and no key of the audited stream was used. "
    "What is tested is the same code that publishes, or the laws it draws from."
)
DETECTABLE = (
    "Every test was also run against a bug planted on purpose; a test that misses its bug is void. Where a test "
    "passes, effects larger than the one named here would most likely have been found, if they show in the histories "
    "that were tried. Where chance plays a part, a test calls a correct stream a violation with a probability of at "
    "most 1 − {confidence}; with {bounds} tests, that any of them does has probability at most {false_alarm}."
)
CAPTIONS = {
    "tradeoff": "An attacker who must tell two neighbouring histories apart can trade false alarms against misses. The "
    "claim rules out the shaded region. Points may lie slightly below it by chance: the verdict allows for that.",
    "twins": "Two histories under one key. Before they unite the answers may differ; from the vertical line on they "
    "must be the same.",
    "transition": "Secret bits that a decoder gets back from answers about many sets, by the error of the answers. A "
    "half is what blind guessing gets; with little error almost all bits are recovered.",
}
NOT_SHOWN = (
    "That the stream is private. A test can show that more leaks than is claimed, and never that nothing more does: "
    "lower bounds never prove privacy. That the claim holds rests on the proofs named under “What is claimed”, and on "
    "the program doing what they say.",
    "That no other attack succeeds. Only the attacks named here were tried, on short generated histories.",
    "How long answers take, how much memory is used, and anything else that is seen beside the answers: out of scope.",
    "The log of deletions and requests for erasure itself, the input files, their backups and the operator's screen.",
    "Copies that others made downstream of what was published.",
    "Answers published before an erasure: they are not taken back. What they tell is bounded by the claim of privacy.",
    "Attackers who hold the key: with it, the noise can be taken off.",
    "What can be learned of a person from the records of others, or from several operations of one person at once: the "
    "claim is for one operation.",
)
AGAIN = (
    "The command verifies the signature, runs every test again with the same seed and settings, and compares: "
    "verdicts, numbers of runs and counterexamples must be equal, measured numbers equal up to one in a thousand, and "
    "words too where the versions of all programs are the same. It ends with exit code 0 if all agree and 4 if not."
)
NOT_AGAIN = (
    "The audited program was not made from a specification file, so the report alone cannot run it again: run the same "
    "audit from Python with the seed below, and compare."
)
GLOSSARY = (
    ("ε (epsilon)", "How much more likely any event may become by one operation: by a factor of at most e to the ε, "
     "up to δ. Smaller is more private."),
    ("δ (delta)", "A small slack that is added to the probability of any event, beside the factor e to the ε. It "
     "should be far below one in the number of people."),
    ("Neighbouring histories", "Two histories of which one has a single addition or deletion more. Privacy means that "
     "published answers hardly tell them apart."),
    ("Retroactive", "After a deletion all later answers are as if the record had never been there."),
    ("Control", "A bug planted on purpose. A test that does not catch it is void."),
    ("Lower bound", "What an attack has shown to leak, with a margin of error. The true leak may be larger, and no "
     "number of tests shows that it is not."),
)  # fmt: skip
