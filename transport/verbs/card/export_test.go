package card

// NewAnyOrder is a card with queue pairs for so many out-of-order receives, or none, and why.
func NewAnyOrder(receives int, none string) *Card {
	return &Card{anyOrder: anyOrder{receives: receives, none: none}}
}
