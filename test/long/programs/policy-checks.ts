// The requests that a policy engine lets through. Policies come into force some time after they are written.
import type { ClusterAccess } from '#test/clients/controllers/cluster-access.ts'
import { waitFor } from '#test/support/index.ts'

const patience = { deadlineMs: 300_000, intervalMs: 500 }

/** Creates an object; resolves with what kubectl says when it is refused, with undefined when it is not. */
export async function tryCreate({ kubectl }: ClusterAccess, object: object): Promise<string | undefined> {
  const { code, stderr } = await kubectl(['create', '-f', '-'], { input: object, expectCode: 'any' })
  return code === 0 ? undefined : stderr
}

/** Waits until the object is not refused any more. */
export async function untilCreated(cluster: ClusterAccess, object: object): Promise<void> {
  const isCreated = async (): Promise<boolean> => {
    const refusal = await tryCreate(cluster, object)
    if (refusal !== undefined) throw new Error(refusal)
    return true
  }
  await waitFor(isCreated, { what: `an object to be created in ${cluster.name}`, ...patience })
}

/** Waits until a dry run of the creation is refused with this text. */
export async function untilRefused({ name, kubectl }: ClusterAccess, object: object, text: string): Promise<void> {
  const isRefused = async (): Promise<boolean> => {
    const args = ['create', '--dry-run=server', '-f', '-']
    const { stdout, stderr } = await kubectl(args, { input: object, expectCode: 'any' })
    if (!stderr.includes(text)) throw new Error(stdout + stderr)
    return true
  }
  await waitFor(isRefused, { what: `"${text}" in ${name}`, ...patience })
}
