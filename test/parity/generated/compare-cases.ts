// Runs generated cases against both servers, several at once, and tells which differ.
import { isDeepStrictEqual } from 'node:util'
import { Session } from '#test/parity/support/session.ts'
import type { TwoServers } from '#test/parity/support/two-servers.ts'

/** A case that was made from a seed. Its title has the seed. */
export interface Case {
  readonly title: string
  readonly run: (session: Session) => Promise<void>
}

/** A difference that is there on purpose. */
export interface KnownDifference {
  readonly reason: string
  /** Whether the text of a difference shows that it is this one. */
  readonly isThis: (told: string) => boolean
}

const atOnce = 6
const shownCharacters = 1500

/** The texts of the differences that are not known, each with the title of its case and both answers. */
export async function differencesOf(
  cases: readonly Case[],
  servers: TwoServers,
  { run, known }: { run: { id: string; namespace: string }; known: readonly KnownDifference[] },
): Promise<string[]> {
  const told: string[] = []
  const rest = cases.values()
  const worker = async (): Promise<void> => {
    for (const one of rest) {
      const difference = await differenceOf(one, servers, run)
      if (difference !== undefined && !known.some(({ isThis }) => isThis(difference))) told.push(difference)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return told
}

async function differenceOf(
  { title, run }: Case,
  servers: TwoServers,
  words: { id: string; namespace: string },
): Promise<string | undefined> {
  const [real, ours] = [new Session(servers.real, words), new Session(servers.ours, words)]
  await Promise.all([run(real), run(ours)])
  const at = real.transcript.findIndex((entry, index) => !isDeepStrictEqual(entry, ours.transcript[index]))
  if (at < 0 && real.transcript.length === ours.transcript.length) return undefined
  const [theirs, own] = [JSON.stringify(real.transcript[at]), JSON.stringify(ours.transcript[at])]
  const from = Math.max(0, firstDifference(theirs, own) - shownCharacters / 3)
  const part = (text: string): string => text.slice(from, from + shownCharacters)
  return `${title}, step ${at}: ${real.transcript[at]?.asked ?? ''}\n  real: ${part(theirs)}\n  ours: ${part(own)}`
}

function firstDifference(a: string, b: string): number {
  let i = 0
  while (i < a.length && a[i] === b[i]) i++
  return i
}
