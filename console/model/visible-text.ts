// Text of programs in a form that cannot act on the reader's screen.

/**
 * Control characters in caret notation (ESC is `^[`), and characters that change the direction of a text as their code.
 * A log line could otherwise hide a part of itself or show it in another order.
 */
export function visibleText(text: string): string {
  // The ranges: C0 without tab, DEL, C1, and the marks, embeddings, overrides and isolates of Unicode.
  return text.replace(controls, (character) => {
    const code = character.codePointAt(0) ?? 0
    if (code < 0x20 || code === 0x7f) return `^${String.fromCodePoint(code ^ 0x40)}`
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
  })
}

const controls = new RegExp(
  '[\\u0000-\\u0008\\u000a-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]',
  'gu',
)

/** A line of a log without the sequences that colour it, with everything else visible. */
export function logText(line: string): string {
  return visibleText(line.replace(colours, ''))
}

const colours = new RegExp('\\u001b\\[[0-9;]{0,32}m', 'gu')
