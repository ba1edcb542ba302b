// Bytes come whole: a fraction of one is taken, and told of.
import { quantityOf } from '../../resources/typed/quantity.ts'

const one = 1_000_000_000n

type Amounts = Readonly<Record<string, string>> | undefined

/** What to tell of the amounts at `path` that are counted in bytes and have a fraction. */
export function* fractionWarnings(path: string, amounts: Amounts, names: readonly string[]): Iterable<string> {
  if (amounts === undefined) return
  for (const name of names) {
    const text = amounts[name]
    if (text === undefined || /^\d+[KMGTPE]?i?$/.test(text) || quantityOf(text).nanos % one === 0n) continue
    yield `${path}[${name}]: fractional byte value "${text}" is invalid, must be an integer`
  }
}

type Resources = { readonly requests?: Amounts; readonly limits?: Amounts } | undefined

/** What to tell of a claim whose resources are at `path`. */
export function* claimResourceWarnings(path: string, resources: Resources): Iterable<string> {
  if (resources === undefined) return
  yield* fractionWarnings(`${path}.requests`, resources.requests, ['storage'])
  yield* fractionWarnings(`${path}.limits`, resources.limits, ['storage'])
}
