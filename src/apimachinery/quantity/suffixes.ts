// The suffixes of quantities.

/** Powers of ten, by suffix. */
export const decimalExponents: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}

/** Each suffix stands for 1024 times the suffix before it. */
export const binarySuffixes: readonly string[] = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
