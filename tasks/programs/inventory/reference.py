"""The stock of a shop: what is there, what it is worth, and what is running low."""


class Inventory:
    """Items in stock; each has a name, a price per unit and a number of units, which is at least one.

    An item is low on stock when it has at most `low_stock` units.
    """

    def __init__(self, low_stock: int = 5) -> None:
        self._low_stock = low_stock
        self._prices: dict[str, float] = {}
        self._units: dict[str, int] = {}

    def add_item(self, name: str, price: float, quantity: int = 1) -> int:
        """Put units of an item in stock and return how many of it there are now.

        Units of an item that is there already are added to the others, and its price becomes the average price over
        all of its units, rounded to cents. Raises ValueError for an empty name, a price below 0 or a quantity below 1.

        >>> stock = Inventory()
        >>> stock.add_item("nail", 0.5, 10)
        10
        >>> stock.add_item("nail", 0.5, 5)
        15
        """
        if not name or price < 0 or quantity < 1:
            raise ValueError("an item has a name, a price of at least 0 and at least one unit")
        stock: int = self._units.get(name, 0)
        known: float = self._prices.get(name, price)
        units = stock + quantity
        worth = known * stock + price * quantity
        self._prices[name] = round(worth / units, 2)
        self._units[name] = units
        return units

    def remove_item(self, name: str, quantity: int = 1) -> int:
        """Take units of an item out of stock and return how many of it are left.

        All units may be taken; an item without units is no longer in stock. Raises KeyError for an item that is not in
        stock, ValueError for a quantity below 1 or above what is there; nothing is taken then.

        >>> stock = Inventory()
        >>> _ = stock.add_item("nail", 0.5, 10)
        >>> stock.remove_item("nail", 4)
        6
        """
        stock: int = self._units[name]
        if quantity < 1 or quantity > stock:
            raise ValueError("take at least one unit, and no more than there are")
        left = stock - quantity
        self._units[name] = left
        if left < 1:
            del self._units[name], self._prices[name]
        return left

    def calculate_total(self, tax_rate: float = 0.0) -> float:
        """Return what all units of all items cost, with tax, rounded to cents; without items 0.0.

        `tax_rate` is in per cent of the sum (20 adds a fifth). Raises ValueError when it is below 0.

        >>> stock = Inventory()
        >>> _ = stock.add_item("nail", 0.5, 10)
        >>> stock.calculate_total()
        5.0
        """
        if tax_rate < 0:
            raise ValueError("a tax rate is at least 0")
        total = 0.0
        for name in self._units:
            price: float = self._prices[name]
            units: int = self._units[name]
            total = total + price * units
        tax = total * tax_rate / 100
        return round(total + tax, 2)

    def apply_discount(self, percent: float, min_units: int = 1) -> list[str]:
        """Lower the prices of all items with at least `min_units` units; return the names of these items, sorted.

        `percent` is in per cent of the price (25 takes a quarter off); each new price is rounded to cents. Raises
        ValueError when it is below 0 or above 100.

        >>> stock = Inventory()
        >>> _ = stock.add_item("saw", 20.0, 3)
        >>> stock.apply_discount(25)
        ['saw']
        >>> stock.calculate_total()
        45.0
        """
        if percent < 0 or percent > 100:
            raise ValueError("a discount is between 0 and 100 per cent")
        lowered: list[str] = []
        for name in sorted(self._units):
            price: float = self._prices[name]
            units: int = self._units[name]
            if units >= min_units:
                reduction = price * percent / 100
                self._prices[name] = round(price - reduction, 2)
                lowered.append(name)
        return lowered

    def get_summary(self) -> dict[str, object]:
        """Return four facts by name.

        `items` is the number of different items, `units` that of all units together, `low` the sorted list of the
        names of items low on stock, and `dearest` the name of the item with the highest price per unit: the first by
        name where several have it, None without items.

        >>> stock = Inventory(low_stock=2)
        >>> _ = stock.add_item("nail", 0.5, 10)
        >>> stock.get_summary()
        {'items': 1, 'units': 10, 'low': [], 'dearest': 'nail'}
        """
        low: list[str] = []
        dearest: str | None = None
        highest = 0.0
        count = 0
        threshold: int = self._low_stock
        for name in sorted(self._units):
            price: float = self._prices[name]
            units: int = self._units[name]
            count = count + units
            if units <= threshold:
                low.append(name)
            if dearest is None or price > highest:
                highest = price
                dearest = name
        return {"items": len(self._units), "units": count, "low": low, "dearest": dearest}
