from support.cli_program import folder, program
from support.store_commands import no_key_around, orders, six_rounds

__all__ = ["folder", "no_key_around", "orders", "program", "six_rounds"]
