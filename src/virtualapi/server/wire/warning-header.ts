// The `Warning` header of an answer, as kube-apiserver writes it: each text once, and truncated if all texts together
// are long.

/** Total length in runes above which each text is truncated. */
const mostRunes = 4 * 1024
/** Length in runes to which a text is truncated. */
const mostRunesOfOne = 256

interface Text {
  readonly text: string
  readonly runes: number
}

/**
 * The value for these texts, in their order: code 299 (RFC 7234) without an agent. Each of its characters is a byte of
 * UTF-8, because node:http writes headers as latin1. Texts that are empty or have control characters are left out.
 * Undefined if no text is left.
 */
export function warningHeader(warnings: readonly string[]): string | undefined {
  if (warnings.length === 0) return undefined
  let texts: Text[] = []
  let written = 0
  let truncating = false
  for (const warning of new Set(warnings)) {
    if (truncating && written >= mostRunes) break
    if (warning === '' || /\p{Cc}/u.test(warning)) continue
    const whole = { text: warning, runes: runesOf(warning) }
    if (!truncating && written + whole.runes > mostRunes) {
      truncating = true
      texts = texts.map(truncated)
      written = texts.reduce((sum, { runes }) => sum + runes, 0)
    }
    const text = truncating ? truncated(whole) : whole
    texts.push(text)
    written += text.runes
  }
  return texts.length === 0 ? undefined : texts.map(({ text }) => quoted(text)).join(', ')
}

function runesOf(text: string): number {
  let runes = 0
  for (const _ of text) runes++
  return runes
}

function truncated(text: Text): Text {
  if (text.runes <= mostRunesOfOne) return text
  return {
    text: Array.from(text.text.slice(0, 2 * mostRunesOfOne))
      .slice(0, mostRunesOfOne)
      .join(''),
    runes: mostRunesOfOne,
  }
}

function quoted(text: string): string {
  return `299 - "${Buffer.from(text.replace(/["\\]/g, '\\$&')).toString('latin1')}"`
}
