// Waits until a member has nothing of a logical cluster left.
import { waitFor, type Cluster } from '#test/support/index.ts'

interface List {
  readonly items: readonly {
    readonly metadata: {
      readonly name: string
      readonly namespace?: string
      readonly annotations?: Readonly<Record<string, string>>
      readonly deletionTimestamp?: string
      readonly finalizers?: readonly string[]
    }
    readonly status?: { readonly conditions?: readonly { readonly status: string; readonly message?: string }[] }
  }[]
}

/** Resolves when no namespace of these logical clusters is left; rejects with those that are, and what holds them. */
export async function untilClean(member: Cluster, clusterIds: readonly string[]): Promise<void> {
  const listed = async (what: string): Promise<List> => (await member.get(`/api/v1/${what}`)) as List
  await waitFor(
    async () => {
      const left = (await listed('namespaces')).items.filter(
        ({ metadata }) =>
          metadata.annotations?.['kcp.dev/locator'] !== undefined && clusterIds.includes(metadata.name.slice(0, 10)),
      )
      if (left.length === 0) return true
      const problems = left.map(({ metadata, status }) => {
        const held = (status?.conditions ?? []).filter((one) => one.status === 'True').map(({ message }) => message)
        return `${metadata.name} deleted at ${metadata.deletionTimestamp ?? 'no time'} ${held.join(' ')}`
      })
      const pods = (await listed('pods')).items.filter(({ metadata }) =>
        left.some(({ metadata: { name } }) => name === metadata.namespace),
      )
      const running = pods.map(
        ({ metadata }) => `${metadata.name} deleted at ${metadata.deletionTimestamp ?? 'no time'}`,
      )
      throw new Error([...problems, ...running].join('; '))
    },
    { what: `${member.name} to be clean`, deadlineMs: 90_000, intervalMs: 500 },
  )
}
