"""What the factorial mixture computes: activations by mean field, and by enumeration."""
