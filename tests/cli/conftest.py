from support.checked_files import spec
from support.cli_program import folder, program
from support.store_commands import no_key_around, orders, six_rounds
from support.zone_rules import rules

__all__ = ["folder", "no_key_around", "orders", "program", "rules", "six_rounds", "spec"]
