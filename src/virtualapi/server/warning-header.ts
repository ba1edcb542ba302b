// The `Warning` header of an answer, as a real server writes it: each text once, and all of them short enough to be read.

/** Runes of all texts together, above which each of them is cut. */
const mostRunes = 4 * 1024
/** Runes of one text that are left then. */
const mostRunesOfOne = 256

interface Text {
  readonly text: string
  readonly runes: number
}

/**
 * The value for these texts, in their order: codes 299 (RFC 7234) without an agent, in UTF-8 as node:http sends it. Texts
 * with control characters cannot be told. Undefined where there is none to tell.
 */
export function warningHeader(warnings: readonly string[]): string | undefined {
  if (warnings.length === 0) return undefined
  let told: Text[] = []
  let written = 0
  let cutting = false
  for (const warning of new Set(warnings)) {
    if (cutting && written >= mostRunes) break
    if (warning === '' || /\p{Cc}/u.test(warning)) continue
    const whole = { text: warning, runes: runesOf(warning) }
    if (!cutting && written + whole.runes > mostRunes) {
      cutting = true
      told = told.map(cut)
      written = told.reduce((sum, { runes }) => sum + runes, 0)
    }
    const one = cutting ? cut(whole) : whole
    told.push(one)
    written += one.runes
  }
  return told.length === 0 ? undefined : told.map(({ text }) => quoted(text)).join(', ')
}

function runesOf(text: string): number {
  let runes = 0
  for (const _ of text) runes++
  return runes
}

function cut(one: Text): Text {
  if (one.runes <= mostRunesOfOne) return one
  return {
    text: Array.from(one.text.slice(0, 2 * mostRunesOfOne))
      .slice(0, mostRunesOfOne)
      .join(''),
    runes: mostRunesOfOne,
  }
}

function quoted(text: string): string {
  return `299 - "${Buffer.from(text.replace(/["\\]/g, '\\$&')).toString('latin1')}"`
}
