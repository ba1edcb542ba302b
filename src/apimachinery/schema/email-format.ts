// Mail addresses as Go's net/mail.ParseAddress reads them: `a@b`, `Name <a@b>`, with quoted strings and comments.
import { isIP } from 'node:net'

/** Whether a text is one mail address. A group of addresses (`name: a@b;`) is not a mail address here. */
export function isEmail(text: string): boolean {
  if (text.includes('\ufffd')) return false
  const bare = afterAddress(text, 0)
  if (bare >= 0) {
    const end = afterComments(text, bare)
    return end === text.length
  }
  const open = afterPhrase(text, afterSpace(text, 0))
  if (open < 0 || text[open] !== '<') return false
  const close = afterAddress(text, open + 1)
  return close >= 0 && text[close] === '>' && afterComments(text, close + 1) === text.length
}

// Each of these functions returns the offset after the text that it reads, or -1 if the text does not match.

const atext = String.raw`[!#-'*+\-/-9=?A-Z^-~\u0080-\u{10ffff}]`
const dotAtom = new RegExp(String.raw`${atext}+(?:\.${atext}+)*`, 'uy')
const word = new RegExp(String.raw`(?:\.|${atext})+`, 'uy')
const quoted = /"(?:[!#-[\]-~\u0080-\u{10ffff} \t]|\\[!-~\u0080-\u{10ffff} \t])*"/uy
const literal = /\[([!-Z^-~\u0080-\u{10ffff}]*)\]/uy

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function afterAddress(text: string, from: number): number {
  const at = afterSpace(text, from)
  const local = match(text[at] === '"' ? quoted : dotAtom, text, at)?.[0] ?? ''
  if (local === '' || local === '""' || text[at + local.length] !== '@') return -1
  const start = afterSpace(text, at + local.length + 1)
  if (text[start] !== '[') return atomEnd(text, start)
  const [all = '', address = ''] = match(literal, text, start) ?? []
  return isIP(address) !== 0 && !address.includes('%') ? start + all.length : -1
}

/** The end of an atom. A dot after it is an error: the atom would end in a dot or have two in a row. */
function atomEnd(text: string, start: number): number {
  const atom = match(dotAtom, text, start)?.[0]
  return atom === undefined || text[start + atom.length] === '.' ? -1 : start + atom.length
}

function afterPhrase(text: string, start: number): number {
  let at = start
  for (let words = 0; text[at] !== '<'; words++) {
    const next = match(text[at] === '"' ? quoted : word, text, at)?.[0]
    if (next === undefined) return words === 0 ? -1 : at
    at = afterComments(text, at + next.length)
    if (at < 0) return -1
  }
  return at
}

function afterSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}

/** Reads spaces and comments, which can be nested. */
function afterComments(text: string, from: number): number {
  let at = afterSpace(text, from)
  while (text[at] === '(') {
    let depth = 0
    do {
      if (at >= text.length) return -1
      if (text[at] === '\\' && at + 1 < text.length) at++
      else if (text[at] === '(') depth++
      else if (text[at] === ')') depth--
      at++
    } while (depth > 0)
    at = afterSpace(text, at)
  }
  return at
}
