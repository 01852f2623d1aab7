"""Damage to the bytes of a file, as tests of readers do it."""


def mutate(content, rng):
    """The content with a few bytes changed, cut off, put in, taken out or swapped."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(0, max(len(changed), 1)))
        # Half of the damage near the beginning, where headers are.
        if rng.random() < 0.5:
            place = min(place, int(rng.integers(0, 600)))
        length = int(rng.integers(1, 9))
        kind = rng.integers(0, 6)
        if kind == 0 and changed:
            changed[min(place, len(changed) - 1)] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            changed[place : place + length] = rng.bytes(length)
        elif kind == 2:
            del changed[place:]
        elif kind == 3:
            changed[place:place] = rng.bytes(length)
        elif kind == 4:
            del changed[place : place + length]
        else:
            digits = [i for i, byte in enumerate(changed[:4000]) if 48 <= byte <= 57]
            if digits:
                changed[digits[int(rng.integers(0, len(digits)))]] = int(rng.integers(48, 58))
    return bytes(changed)
