// The end of a test with members: the logical clusters go first, so that the members are left clean.
import { kubectl } from '#test/support/index.ts'

/** Deletes all logical clusters and all members of an installation, and waits until they are gone. */
export async function deleteAll(admin: string): Promise<void> {
  for (const kind of ['logicalclusters', 'memberclusters'])
    await kubectl(admin, ['delete', `${kind}.kcp.dev`, '--all', '--timeout=60s'])
}
