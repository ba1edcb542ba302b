// Warnings about amounts in bytes that are not whole numbers.
import { quantityOf } from '#apimachinery/quantity/index.ts'

const one = 1_000_000_000n

type Amounts = Readonly<Record<string, string>> | undefined

/** Warnings about the byte amounts at `path` that have a fraction. `names`: the resources that are counted in bytes. */
export function* fractionalByteWarnings(path: string, amounts: Amounts, names: readonly string[]): Iterable<string> {
  if (amounts === undefined) return
  for (const name of names) {
    const text = amounts[name]
    if (text === undefined || /^\d+[KMGTPE]?i?$/.test(text) || quantityOf(text).nanos % one === 0n) continue
    yield `${path}[${name}]: fractional byte value "${text}" is invalid, must be an integer`
  }
}

type Resources = { readonly requests?: Amounts; readonly limits?: Amounts } | undefined

/** Warnings about the resources of a claim, at `path`. */
export function* claimResourceWarnings(path: string, resources: Resources): Iterable<string> {
  if (resources === undefined) return
  yield* fractionalByteWarnings(`${path}.requests`, resources.requests, ['storage'])
  yield* fractionalByteWarnings(`${path}.limits`, resources.limits, ['storage'])
}
