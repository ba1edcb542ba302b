// An estimate of the size of the program that a regular expression compiles to. Repetitions multiply: 20 characters may
// stand for a million instructions, which take seconds to compile.

/** Classes such as \p{L} are compiled to tables. */
const unicodeClassSize = 4

/** Number of characters whose reading costs as much as one instruction. */
const charactersPerInstruction = 4

/**
 * An upper estimate of the number of instructions, in time linear in the length of the text; any number for an invalid
 * expression.
 */
export function estimatePatternSize(pattern: string): number {
  const groups: Group[] = [{ done: 0, last: 0 }]
  const top = (): Group => groups[groups.length - 1] ?? { done: 0, last: 0 }
  for (let at = 0; at < pattern.length;) {
    const { size, next, repeats = 1, opens = false, closes = false } = tokenAt(pattern, at)
    at = next
    if (opens) groups.push({ done: 0, last: 0 })
    else if (closes && groups.length > 1) {
      const inner = sizeOf(groups.pop())
      append(top(), 2 + inner)
    } else if (repeats !== 1) top().last *= repeats
    else append(top(), size)
  }
  const read = Math.ceil(pattern.length / charactersPerInstruction)
  return groups.reduce((sum, group) => sum + sizeOf(group), read)
}

/** Sizes within a group: of its last element, which a repetition multiplies, and of the elements before it. */
interface Group {
  done: number
  last: number
}

interface Token {
  readonly size: number
  readonly next: number
  /** A repetition of the element before. */
  readonly repeats?: number
  readonly opens?: boolean
  readonly closes?: boolean
}

function append(group: Group, size: number): void {
  group.done += group.last
  group.last = size
}

function sizeOf(group: Group | undefined): number {
  return group === undefined ? 0 : group.done + group.last
}

const repetition = /\{([0-9]+)(,([0-9]*))?\}/y
const unicodeClass = /\\[pP](\{[^}]*\}|.)/y

function tokenAt(pattern: string, at: number): Token {
  switch (pattern[at]) {
    case '(':
      return { size: 0, next: at + 1, opens: true }
    case ')':
      return { size: 0, next: at + 1, closes: true }
    case '*':
    case '+':
    case '?':
      return { size: 0, next: at + 1, repeats: 2 }
    case '{':
      return repetitionAt(pattern, at)
    case '[':
      return classAt(pattern, at)
    case '\\':
      return escapeAt(pattern, at)
    default:
      return { size: 1, next: at + 1 }
  }
}

function repetitionAt(pattern: string, at: number): Token {
  repetition.lastIndex = at
  const [text, least = '', comma, most = ''] = repetition.exec(pattern) ?? []
  if (text === undefined) return { size: 1, next: at + 1 }
  const open = comma !== undefined && most === '' ? 1 : 0
  // An element of "{0,n}" or "{n,}" needs a branch as well.
  const branches = comma === undefined ? 1 : 2
  const count = Math.max(Number(least) + open, Number(most))
  return { size: 0, next: at + text.length, repeats: Math.max(1, count) * branches }
}

/** A class in brackets is one instruction. A bracket that comes first stands for itself. */
function classAt(pattern: string, start: number): Token {
  let at = pattern[start + 1] === '^' ? start + 2 : start + 1
  let size = 1
  if (pattern[at] === ']') at++
  while (at < pattern.length && pattern[at] !== ']') {
    if (pattern.startsWith('[:', at)) at = endOf(pattern, ':]', at)
    else if (pattern[at] === '\\') {
      if (/[pP]/.test(pattern[at + 1] ?? '')) size = unicodeClassSize
      at += 2
    } else at++
  }
  return { size, next: at + 1 }
}

function escapeAt(pattern: string, at: number): Token {
  if (pattern[at + 1] === 'Q') {
    const next = endOf(pattern, '\\E', at)
    return { size: next - at, next }
  }
  unicodeClass.lastIndex = at
  const found = unicodeClass.exec(pattern)?.[0]
  return found === undefined ? { size: 1, next: at + 2 } : { size: unicodeClassSize, next: at + found.length }
}

/** The position after the next `end`, or the end of the text. */
function endOf(pattern: string, end: string, from: number): number {
  const at = pattern.indexOf(end, from + 2)
  return at < 0 ? pattern.length : at + end.length
}
