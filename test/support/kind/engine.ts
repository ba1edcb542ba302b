// The availability of clusters of kind: possible here, and wanted.
import { runCommand } from '#test/support/command.ts'

/** The container engines that kind knows, in the order in which they are looked for. */
export const engines = ['docker', 'podman', 'nerdctl'] as const
export type ContainerEngine = (typeof engines)[number]

export type Provider = { readonly kind: 'built-in' } | { readonly kind: 'kind'; readonly engine: ContainerEngine }

/** True if the engine answers: its command alone may be a client without a daemon. */
type Answers = (engine: ContainerEngine) => Promise<boolean>

/**
 * What boots clusters with nodes. `wanted` (KCP_TEST_CLUSTERS) is `kind`, `built-in`, or undefined for `fallback`:
 * `built-in` for tests, `any` for clusters to try out, which takes kind where an engine answers. Rejects with what to
 * do where kind is wanted and no engine answers, or for another word.
 */
export async function chooseProvider(
  wanted: string | undefined,
  { fallback, answers = engineResponses }: { fallback: 'built-in' | 'any'; answers?: Answers },
): Promise<Provider> {
  const choice = wanted === undefined || wanted === '' ? fallback : wanted
  if (choice === 'built-in') return { kind: 'built-in' }
  if (choice !== 'kind' && choice !== 'any')
    throw new Error(`KCP_TEST_CLUSTERS is "${choice}": set it to kind or built-in, or not at all`)
  for (const engine of engines) if (await answers(engine)) return { kind: 'kind', engine }
  if (choice === 'any') return { kind: 'built-in' }
  throw new Error(
    `KCP_TEST_CLUSTERS is "kind", and no container engine answers (${engines.join(', ')}): start one, or unset it`,
  )
}

async function engineResponses(engine: ContainerEngine): Promise<boolean> {
  const result = await runCommand(engine, ['info'], { expectCode: 'any', timeoutMs: 10_000 }).catch(() => undefined)
  return result?.code === 0
}
