"""Totals of customer orders."""


def calculate_order_total(items: list[tuple[float, float]], discount: float, tax_rate: float) -> float:
    """Return what a customer pays for an order, in currency units, rounded to cents.

    `items` is a sequence of (price, quantity) pairs; each pair costs price times quantity, and the subtotal is the
    sum over all pairs. `discount` is in per cent of the subtotal (10 means 10 %) and is taken off it. `tax_rate` is in
    per cent and is charged on the amount that remains after the discount, and added to it. Rounding happens once,
    at the end, with the built-in `round` to two digits. The result is a float; an empty order costs 0.0.

    >>> calculate_order_total([(10.0, 3)], 10, 0)
    27.0
    >>> calculate_order_total([(19.99, 1), (4.5, 2)], 0, 8)
    31.31
    """
    subtotal = 0.0
    for price, quantity in items:
        line = price * quantity
        subtotal = subtotal + line
    reduction = subtotal * discount / 100
    discounted = subtotal - reduction
    tax = discounted * tax_rate / 100
    total = discounted + tax
    return round(total, 2)
