"""Statistics with a planted bug in their bound."""


class Planted:
    """A mix-in for statistics: the methods of their class ``InBound`` come before those of their bound."""

    def bind(self, grant):
        return became(super().bind(grant), type(self).InBound)


def became(thing, mixin, **own):
    """The same object, of a class that has something else before its own."""
    cls = type(f"{mixin.__name__}{type(thing).__name__}", (mixin, type(thing)), own)
    out = cls.__new__(cls)
    vars(out).update(vars(thing))
    return out
