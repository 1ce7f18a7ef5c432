from cli_program import folder, program

__all__ = ["folder", "program"]
