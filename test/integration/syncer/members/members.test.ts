// The specs that need members with syncers and nothing of each other: they share one upstream and two members, because
// each start takes as long as these specs.
import { startSyncedMembers, type SyncedMembers } from '../syncers-of-members.ts'
import { defineEndings } from './endings.ts'
import { defineEphemeralClaims } from './ephemeral-claims.ts'
import { defineLeavingSets } from './leaving-sets.ts'
import { defineNamesOfPods } from './names-of-pods.ts'
import { defineOrphans } from './orphans.ts'
import { defineRestoredClaims } from './restored-claims.ts'

describe('members with syncers', () => {
  let system: SyncedMembers | undefined

  before(async function () {
    this.timeout(300_000)
    system = await startSyncedMembers(['east', 'west'])
  })
  after(async function () {
    this.timeout(60_000)
    await system?.[Symbol.asyncDispose]()
  })

  const started = (): SyncedMembers => {
    if (system === undefined) throw new Error('the members did not start')
    return system
  }
  defineEndings(started)
  defineEphemeralClaims(started)
  defineLeavingSets(started)
  defineNamesOfPods(started)
  defineOrphans(started)
  defineRestoredClaims(started)
})
