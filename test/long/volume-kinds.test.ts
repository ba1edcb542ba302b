// A member that is drained with volumes of every kind of user: of a Job and a pod that have ended, ephemeral, for one pod at
// a time, of a StatefulSet that deletes claims when it shrinks, and claims that have no volume.
import { expect } from 'chai'
import { kubectl, needsNodes, runKcp, shellImage, storageClasses, waitFor } from '#test/support/index.ts'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { Writers, writer } from './stateful/writers.ts'

const place = 'acme/kinds'

endLabAfterAll()

describe('volumes of every kind of user, in a member that is drained', function () {
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  let writers: Writers
  /** The claims that had a VolumeMove. */
  const moved = new Set<string>()

  const as = (...args: string[]): Promise<string> => writers.as(place, ...args)
  const claim = (name: string): object => ({
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name } },
    spec: {
      ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
      resources: { requests: { storage: '64Mi' } },
    },
  })
  /** The spec of a pod that runs once, with the claim at /data. */
  const once = (claimName: string, script: string): object => ({
    ...{ restartPolicy: 'Never', terminationGracePeriodSeconds: 1 },
    containers: [
      {
        ...{ name: 'main', image: shellImage, command: ['sh', '-c', script] },
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
  })
  const ephemeral = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'scratch' } },
    spec: {
      selector: { matchLabels: { app: 'scratch' } },
      template: {
        metadata: { labels: { app: 'scratch' } },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              ...{
                name: 'main',
                image: shellImage,
                command: ['sh', '-c', 'echo began > /data/began; exec sleep 100000'],
              },
              volumeMounts: [{ name: 'scratch', mountPath: '/data' }],
              readinessProbe: { exec: { command: ['sh', '-c', 'test -s /data/began'] }, periodSeconds: 1 },
            },
          ],
          volumes: [
            {
              name: 'scratch',
              ephemeral: {
                volumeClaimTemplate: {
                  spec: {
                    ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
                    resources: { requests: { storage: '64Mi' } },
                  },
                },
              },
            },
          ],
        },
      },
    },
  }
  const claims = async (): Promise<string[]> =>
    (await as('get', 'pvc', '-o', 'jsonpath={.items[*].metadata.name}')).trim().split(/\s+/)
  const gone = (name: string): Promise<unknown> =>
    waitFor(async () => !(await claims()).includes(name), { what: `claim "${name}" to be gone`, deadlineMs: 90_000 })
  const scale = (app: string, replicas: number): Promise<string> =>
    as('scale', `statefulset/${app}`, `--replicas=${replicas}`)
  const scaledPods = (member: string, count: number): Promise<unknown> => {
    const columns = String.raw`jsonpath={range .items[*]}{.metadata.annotations.kcp\.dev/member}:{.status.containerStatuses[0].ready} {end}`
    const expected = Array.from({ length: count }, () => `${member}:true`).join(' ')
    const look = async (): Promise<boolean> =>
      (await as('get', 'pods', '-l', 'app=scaled', '-o', columns)).trim() === expected
    return waitFor(look, { what: `${count} pods to be ready in ${member}`, deadlineMs: 120_000 })
  }
  /** What a new pod with the claim reads. */
  const read = async (claimName: string, script: string): Promise<string> => {
    const name = `read-${claimName}`
    const spec = once(claimName, script)
    await writers.apply(place, [{ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }])
    await as('wait', `pod/${name}`, '--for=jsonpath={.status.phase}=Succeeded', '--timeout=90s')
    const member = String.raw`jsonpath={.metadata.annotations.kcp\.dev/member}`
    expect(await as('get', 'pod', name, '-o', member)).to.equal('west')
    return (await as('logs', name)).trim()
  }

  before(async function () {
    this.timeout(30 * 60_000)
    await needsNodes(this)
    writers = stack.use(await Writers.make({ default: 'Copy', retainSeconds: 5 }))
    stack.defer(() => deleteAll(writers.installation.admin))
    await writers.tenant('acme')
    const { admin, flags } = writers.installation
    await runKcp(['cordon', 'west', ...flags])
    await writers.begin(place)
    const retention = { whenDeleted: 'Retain', whenScaled: 'Delete' }
    await writers.apply(place, [
      ...['imported', 'written', 'pending'].map(claim),
      {
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'import' } },
        spec: { template: { spec: once('imported', 'echo imported >> /data/log; sync') } },
      },
      {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'write' } },
        spec: once('written', 'echo written >> /data/log; sync'),
      },
      ephemeral,
      writer('exclusive', { accessMode: 'ReadWriteOncePod' }),
      writer('scaled', { replicas: 2, retention }),
    ])
    await as('wait', 'job/import', '--for=condition=Complete', '--timeout=120s')
    await as('wait', 'pod/write', '--for=jsonpath={.status.phase}=Succeeded', '--timeout=120s')
    for (const app of ['scratch', 'exclusive']) await writers.runs(place, app, 'east')
    await scaledPods('east', 2)
    await scale('scaled', 1)
    await gone('data-scaled-1')

    await runKcp(['uncordon', 'west', ...flags])
    const began = Date.now()
    await kubectl(admin, ['patch', 'membercluster', 'east', '--type=merge', '-p', '{"spec":{"state":"Draining"}}'])
    await waitFor(
      async () => {
        for (const { spec } of await writers.moves('kinds')) moved.add(spec.claim)
        const { stdout } = await kubectl(admin, ['get', 'membercluster', 'east', '-o', 'jsonpath={.status}'])
        const { conditions, remaining } = JSON.parse(stdout) as MemberStatus
        const drained = conditions.find(({ type }) => type === 'Drained')
        if (drained?.status === 'True') return true
        throw new Error(JSON.stringify({ drained, remaining }))
      },
      { what: 'the member to be drained', deadlineMs: 300_000, intervalMs: 500 },
    )
    process.stdout.write(`      drained in ${Math.round((Date.now() - began) / 1000)} s\n`)
  })
  after(async function () {
    this.timeout(180_000)
    await stack.disposeAsync()
  })

  it('the claim of a Job that has ended moves, and the Job does not run again', async () => {
    expect(await read('imported', 'cat /data/log')).to.equal('imported')
    const job = JSON.parse(await as('get', 'job', 'import', '-o', 'jsonpath={.status}')) as { succeeded?: number }
    expect(job.succeeded).to.equal(1)
  })

  it('the claim of a pod that has ended moves', async () => {
    expect(await read('written', 'cat /data/log')).to.equal('written')
  })

  it('a new pod gets a new ephemeral volume, and the old one is not copied', async () => {
    await writers.runs(place, 'scratch', 'west')
    const below = await writers.namespaceBelow('acme', 'kinds')
    const names = 'jsonpath={.items[*].metadata.name}'
    const scratchIn = async (member: 'east' | 'west'): Promise<string[]> => {
      const { stdout } = await writers.lab[member].kubectl(['get', 'pvc', '-n', below, '-o', names])
      return stdout.split(' ').filter((name) => name.endsWith('-scratch'))
    }
    expect(await scratchIn('west')).to.have.length(1)
    await waitFor(async () => (await scratchIn('east')).length === 0, {
      ...{ what: 'the old ephemeral volume to end with its pod', deadlineMs: 60_000 },
    })
  })

  it('a volume for one pod at a time is copied once its application has stopped', async () => {
    await writers.runs(place, 'exclusive', 'west')
    expect(await writers.check(place, 'statefulset/exclusive')).to.equal(2)
    const modes = await as('get', 'pvc', 'data-exclusive-0', '-o', 'jsonpath={.spec.accessModes[0]} {.status.phase}')
    expect(modes).to.equal('ReadWriteOncePod Bound')
  })

  it('a StatefulSet that deletes claims when it shrinks does so in its new member, too', async () => {
    await scaledPods('west', 1)
    expect(await writers.check(place, 'scaled-0')).to.equal(2)
    await scale('scaled', 2)
    await scaledPods('west', 2)
    expect(await writers.check(place, 'scaled-1'), 'starts of the new second pod').to.equal(1)
    await scale('scaled', 1)
    await gone('data-scaled-1')
    expect(await writers.check(place, 'scaled-0')).to.equal(2)
  })

  it('claims without data do not move, and do not keep the member from being drained', async () => {
    expect(await as('get', 'pvc', 'pending', '-o', 'jsonpath={.status.phase}')).to.equal('Pending')
    expect([...moved].sort()).to.deep.equal(['data-exclusive-0', 'data-scaled-0', 'imported', 'written'])
  })
})

interface MemberStatus {
  readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[]
  readonly remaining?: readonly object[]
}
