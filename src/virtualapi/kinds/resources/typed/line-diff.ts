// Unified diffs with the format and the matches of Python's difflib, as kube-apiserver shows them in errors. The
// algorithm is followed step by step, because another one would find other, equally valid diffs.

interface Match {
  readonly a: number
  readonly b: number
  readonly size: number
}

type Range = readonly [aFrom: number, aTo: number, bFrom: number, bTo: number]
type Change = readonly [tag: 'equal' | 'other', aFrom: number, aTo: number, bFrom: number, bTo: number]

const context = 3
const popularFrom = 200

/** Unified diff of two lists of lines, without a header; empty if they are equal. */
export function unifiedDiff(a: readonly string[], b: readonly string[]): string {
  return grouped(changesOf(a, b))
    .map((group) => hunkText(group, a, b))
    .join('')
}

function changesOf(a: readonly string[], b: readonly string[]): Change[] {
  const changes: Change[] = []
  let [aAt, bAt] = [0, 0]
  for (const match of matchesOf(a, b)) {
    if (aAt < match.a || bAt < match.b) changes.push(['other', aAt, match.a, bAt, match.b])
    aAt = match.a + match.size
    bAt = match.b + match.size
    if (match.size > 0) changes.push(['equal', match.a, aAt, match.b, bAt])
  }
  return changes
}

/** The matching blocks in order, with adjacent blocks joined, and with an empty block at the end. */
function matchesOf(a: readonly string[], b: readonly string[]): Match[] {
  const positions = positionsOf(b)
  const found: Match[] = []
  const open: Range[] = [[0, a.length, 0, b.length]]
  for (let range = open.pop(); range !== undefined; range = open.pop()) {
    const [aFrom, aTo, bFrom, bTo] = range
    const match = longestMatch(a, b, positions, range)
    if (match.size === 0) continue
    found.push(match)
    open.push([aFrom, match.a, bFrom, match.b], [match.a + match.size, aTo, match.b + match.size, bTo])
  }
  found.sort((one, other) => one.a - other.a || one.b - other.b)
  const joined: Match[] = []
  for (const match of found) {
    const last = joined.at(-1)
    if (last !== undefined && last.a + last.size === match.a && last.b + last.size === match.b)
      joined[joined.length - 1] = { ...last, size: last.size + match.size }
    else joined.push(match)
  }
  return [...joined, { a: a.length, b: b.length, size: 0 }]
}

/** The positions of each line in `b`. As in difflib, lines that are frequent in a long text are left out. */
function positionsOf(b: readonly string[]): Map<string, number[]> {
  const positions = new Map<string, number[]>()
  for (const [index, line] of b.entries()) {
    const known = positions.get(line)
    if (known === undefined) positions.set(line, [index])
    else known.push(index)
  }
  if (b.length >= popularFrom) {
    const most = Math.floor(b.length / 100) + 1
    for (const [line, indexes] of positions) if (indexes.length > most) positions.delete(line)
  }
  return positions
}

function longestMatch(
  a: readonly string[],
  b: readonly string[],
  positions: ReadonlyMap<string, readonly number[]>,
  [aFrom, aTo, bFrom, bTo]: Range,
): Match {
  let [bestA, bestB, size] = [aFrom, bFrom, 0]
  let lengths = new Map<number, number>()
  for (let i = aFrom; i < aTo; i++) {
    const next = new Map<number, number>()
    for (const j of positions.get(a[i] ?? '') ?? []) {
      if (j < bFrom) continue
      if (j >= bTo) break
      const length = (lengths.get(j - 1) ?? 0) + 1
      next.set(j, length)
      if (length > size) [bestA, bestB, size] = [i - length + 1, j - length + 1, length]
    }
    lengths = next
  }
  while (bestA > aFrom && bestB > bFrom && a[bestA - 1] === b[bestB - 1]) {
    bestA--
    bestB--
    size++
  }
  while (bestA + size < aTo && bestB + size < bTo && a[bestA + size] === b[bestB + size]) size++
  return { a: bestA, b: bestB, size }
}

/** Groups changes that are close to each other, with a few equal lines around them. */
function grouped(changes: readonly Change[]): Change[][] {
  const groups: Change[][] = []
  let group: Change[] = []
  for (const [index, change] of changes.entries()) {
    const [tag] = change
    let [, aFrom, aTo, bFrom, bTo] = change
    if (tag === 'equal') {
      if (index === 0) {
        aFrom = Math.max(aFrom, aTo - context)
        bFrom = Math.max(bFrom, bTo - context)
      }
      if (index === changes.length - 1) {
        aTo = Math.min(aTo, aFrom + context)
        bTo = Math.min(bTo, bFrom + context)
      } else if (index > 0 && aTo - aFrom > 2 * context) {
        group.push([tag, aFrom, aFrom + context, bFrom, bFrom + context])
        groups.push(group)
        group = []
        aFrom = aTo - context
        bFrom = bTo - context
      }
    }
    group.push([tag, aFrom, aTo, bFrom, bTo])
  }
  if (group.some(([tag]) => tag !== 'equal')) groups.push(group)
  return groups
}

function hunkText(group: readonly Change[], a: readonly string[], b: readonly string[]): string {
  const [first, last] = [group[0], group.at(-1)]
  if (first === undefined || last === undefined) return ''
  const lines = group.flatMap(([tag, aFrom, aTo, bFrom, bTo]) =>
    tag === 'equal'
      ? a.slice(aFrom, aTo).map((line) => ` ${line}`)
      : [...a.slice(aFrom, aTo).map((line) => `-${line}`), ...b.slice(bFrom, bTo).map((line) => `+${line}`)],
  )
  const header = `@@ -${rangeText(first[1], last[2])} +${rangeText(first[3], last[4])} @@`
  return [header, ...lines].map((line) => `${line}\n`).join('')
}

function rangeText(from: number, to: number): string {
  if (to - from === 1) return String(from + 1)
  return `${to === from ? from : from + 1},${to - from}`
}
