// One real kube-apiserver for all specs that start it without flags of their own: starting one takes ten seconds of
// processor time. A spec that has ended leaves it as it found it.
import { after } from 'mocha'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { openSide } from './side.ts'

interface Shared {
  readonly cluster: Cluster
  /** Groups that it serves, and paths of its objects without a namespace, when it was started. */
  readonly groups: number
  readonly objects: ReadonlySet<string>
}

let idle: Shared | undefined
/** Counts clusters, whose names are different in one run. */
let started = 0

/** A cluster that nobody else uses until it is disposed of. It has the namespaces of specs that used it before. */
export async function borrowCluster(
  flags: readonly string[],
): Promise<AsyncDisposable & { readonly kubeconfig: string }> {
  const shared = idle ?? (await startShared(flags))
  idle = undefined
  return {
    kubeconfig: shared.cluster.kubeconfig,
    async [Symbol.asyncDispose]() {
      if (await isClean(shared)) idle = shared
      else await shared.cluster.stop()
    },
  }
}

// At the end of the whole run: this is outside of every `describe`.
after(async () => {
  const last = idle
  idle = undefined
  await last?.cluster.stop()
})

async function startShared(flags: readonly string[]): Promise<Shared> {
  const name = `shared${started++}`
  const cluster = await startCluster({ name, flags: { 'kube-apiserver': flags } })
  return { cluster, groups: await groupsOf(cluster), objects: new Set(await objectsOf(cluster)) }
}

/** Deletes what was made since the start. False if that did not help; then another one must be started. */
async function isClean({ cluster, groups, objects }: Shared): Promise<boolean> {
  const side = openSide(cluster.kubeconfig)
  const free = { body: { metadata: { finalizers: null } }, headers: { 'content-type': 'application/merge-patch+json' } }
  const remove = async (path: string): Promise<void> => {
    // The finalizer of a definition is the server's: it deletes the objects.
    if (!path.includes('/customresourcedefinitions/')) await side.request('PATCH', path, free)
    await side.request('DELETE', path)
  }
  try {
    await waitFor(
      async () => {
        const added = (await objectsOf(cluster)).filter((path) => !objects.has(path))
        // Admission by these could refuse the deletion of others.
        const admission = added.filter((path) => path.startsWith('/apis/admissionregistration.k8s.io/'))
        for (const path of admission) await remove(path)
        await Promise.all(added.map(remove))
        return added.length === 0 && (await groupsOf(cluster)) === groups
      },
      { what: 'the shared cluster to be as it was', deadlineMs: 15_000 },
    )
    return true
  } catch {
    return false
  } finally {
    side.close()
  }
}

interface ResourceList {
  readonly resources: readonly { name: string; namespaced: boolean; verbs: readonly string[] }[]
}

async function groupsOf(cluster: Cluster): Promise<number> {
  return ((await cluster.get('/apis')) as { groups: readonly unknown[] }).groups.length
}

/**
 * Paths of all objects without a namespace that can be deleted, except namespaces: only a controller completes their
 * deletion.
 */
async function objectsOf(cluster: Cluster): Promise<string[]> {
  const { groups } = (await cluster.get('/apis')) as {
    groups: readonly { versions: readonly { groupVersion: string }[] }[]
  }
  const versions = groups.flatMap((group) => group.versions.map(({ groupVersion }) => `/apis/${groupVersion}`))
  const bases = ['/api/v1', ...versions]
  const found = await Promise.all(
    bases.map(async (base) => {
      const { resources } = (await cluster.get(base)) as ResourceList
      const global = resources.filter(
        ({ name, namespaced, verbs }) =>
          !namespaced &&
          !name.includes('/') &&
          name !== 'namespaces' &&
          verbs.includes('delete') &&
          verbs.includes('list'),
      )
      const lists = global.map(async ({ name }) => {
        const { items } = (await cluster.get(`${base}/${name}`)) as { items: readonly { metadata: { name: string } }[] }
        return items.map(({ metadata }) => `${base}/${name}/${metadata.name}`)
      })
      return (await Promise.all(lists)).flat()
    }),
  )
  return found.flat()
}
