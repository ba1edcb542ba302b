// The choices of a palette that fit to what a user types.

export interface Choice {
  readonly label: string
  readonly hint?: string
  /** Words that find it besides its label, in lower case. */
  readonly words?: string
  readonly run: () => void
}

const maxShown = 60

/** Exact matches first, then those that begin with the text, then those that contain it. */
export function matching(
  choices: readonly Choice[],
  typed: string,
  other?: (typed: string) => Choice | undefined,
): Choice[] {
  const wanted = typed.trim().toLowerCase()
  if (wanted === '') return choices.slice(0, maxShown)
  const rank = ({ label, words = '' }: Choice): number => {
    const all = [label.toLowerCase(), ...words.split(' ')]
    if (all.includes(wanted)) return 0
    if (all.some((word) => word.startsWith(wanted))) return 1
    return all.some((word) => word.includes(wanted)) ? 2 : 3
  }
  const ranked = choices.map((choice) => ({ choice, rank: rank(choice) })).filter((one) => one.rank < 3)
  const found = ranked.sort((a, b) => a.rank - b.rank).map(({ choice }) => choice)
  const own = other?.(typed.trim())
  return [...found.slice(0, maxShown), ...(own === undefined ? [] : [own])]
}
