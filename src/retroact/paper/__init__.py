"""The paper's own forms, statement by statement: for comparison, and for readers of the paper.

No other package imports this one: `paper_forms` loads it when a form is asked for by its name.

| statement | module | by name |
|---|---|---|
| Theorem "linear", 2: what its tree is charged | `tree_accounting` | `noise="paper"` |
| Remark: unknown horizon | `doubling` | `noise="doubling"` |
| Theorem "histogram": threshold | `threshold` | `Histogram(noise="paper")` |
| Theorem "kmeans", corollary "kmedian" | `kmeans`, its greedy step `greedy` | `mode="theorem"` |
| Theorem "sampling", 2 and 3; Appendix C: theorem "amplification" | `sampling_costs` | `accounting="paper"` |
| Lemma "gate" | `gate` | `Gate(n, noise="paper")` |
| Corollary: a window interior point (log* family) | `treelog`, its `trie` | `type = "treelog"` |
| Theorem "compiler", corollary "marginal" | `retroactivity` | `calibration="paper"` |

Lemma "amnesia", the price of retroactivity (Theorem "countdistinct") and the reconstruction of Appendix D are
experiments: `benchmarks/amnesia.py`, `price.py` and `reconstruction.py`.
"""

from .doubling import Doubling
from .gate import gate_union, paper_limit
from .kmeans import Theorem
from .retroactivity import PaperRetroactivity, paper_error, paper_variance
from .sampling_costs import paper_advanced, paper_amplified, paper_basic, paper_cost, paper_epsilon0, paper_ranks
from .threshold import PaperThreshold
from .tree_accounting import PaperTree
from .treelog import TreeLog, tree_log

__all__ = [
    "Doubling",
    "PaperRetroactivity",
    "PaperThreshold",
    "PaperTree",
    "Theorem",
    "TreeLog",
    "gate_union",
    "paper_advanced",
    "paper_amplified",
    "paper_basic",
    "paper_cost",
    "paper_epsilon0",
    "paper_error",
    "paper_limit",
    "paper_ranks",
    "paper_variance",
    "tree_log",
]
