// What the tests of moving stateful applications share: an installation whose volumes move, applications, and a move that
// is watched.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { kubectl, repositoryRoot, storageClasses, waitFor } from '#test/support/index.ts'
import { createLogicalCluster, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { importKcp, kcpImage } from '#test/e2e/kcp-image.ts'
import { lab, storageOfLab, type Lab } from '#test/e2e/lab.ts'
import { namespace, type Manifest } from '#test/e2e/manifests.ts'
import { debianImage } from '../real-programs/debian-images.ts'

const image = 'example.com/stateful:1'
export const postgresPrograms = '/usr/lib/postgresql/15/bin'

export interface VolumeMove {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly claim: string
    readonly namespace: string
    readonly from: string
    readonly to: string
  }
  readonly status?: VolumeMoveStatus
}

export interface VolumeMoveStatus {
  readonly connection?: { readonly way: string; readonly message: string }
  readonly lastRound?: { readonly seconds: number; readonly changedBytes: number }
  readonly phase?: string
  readonly expectedDowntimeSeconds?: number
  readonly notKept?: readonly string[]
  readonly rounds?: number
  readonly bytes?: number
  readonly sentBytes?: number
  readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[]
}

export interface Moved {
  readonly seconds: number
  /** What the VolumeMove said, in the order in which it said it. */
  readonly said: readonly VolumeMoveStatus[]
}

export interface MoveOptions {
  /** Called with the VolumeMove at each look, several times a second. */
  readonly onLook?: (move: VolumeMove) => Promise<void>
  readonly deadlineMs?: number
}

export interface Checked {
  readonly acknowledged: number
  readonly missing: readonly number[]
  readonly longestGap: number
}

/** A tenant of an installation with two members, whose volumes are copied when their workloads move. */
export class StatefulTenant implements AsyncDisposable {
  readonly lab: Lab
  readonly installation: Installation
  readonly kubeconfig: string

  private constructor(lab: Lab, installation: Installation, kubeconfig: string) {
    this.lab = lab
    this.installation = installation
    this.kubeconfig = kubeconfig
  }

  static async make(): Promise<StatefulTenant> {
    const clusters = await lab()
    await storageOfLab()
    const archive = await debianImage('stateful')
    for (const member of [clusters.east, clusters.west]) {
      await importKcp(member)
      await member.node?.importImages(archive)
    }
    const installation = await installWithoutHost(clusters, ['--gateway-image', kcpImage])
    for (const member of [clusters.east, clusters.west]) await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    await kubectl(installation.admin, ['apply', '-f', '-'], {
      input: {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'volumes' } },
        spec: {
          volumes: { default: 'Copy', retainSeconds: 5 },
          move: { drainSeconds: 5, soakSeconds: 0, forwardSeconds: 0 },
        },
      },
    })
    return new StatefulTenant(clusters, installation, await installation.tenant('acme', 'alice'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.installation[Symbol.asyncDispose]()
  }

  /** Runs kubectl in a namespace. */
  async as(space: string, ...args: string[]): Promise<string> {
    return (await kubectl(this.kubeconfig, ['-n', space, ...args], { timeoutMs: 600_000 })).stdout
  }

  /** Makes a namespace whose workloads run in east, and objects in it. */
  async begin(space: string, ...items: Manifest[]): Promise<void> {
    await kubectl(this.kubeconfig, ['apply', '-f', '-'], { input: namespace(space, 'east') })
    const input = { apiVersion: 'v1', kind: 'List', items }
    await kubectl(this.kubeconfig, ['-n', space, 'apply', '-f', '-'], { input })
  }

  async volumeMoves(space: string): Promise<VolumeMove[]> {
    const { stdout } = await kubectl(this.installation.admin, ['get', 'volumemoves', '-o', 'json'])
    return (JSON.parse(stdout) as { items: VolumeMove[] }).items.filter(({ spec }) => spec.namespace === space)
  }

  /** Whether the only pod of an application is ready in the member. */
  async isReadyIn(space: string, app: string, member: string): Promise<boolean> {
    const columns = String.raw`jsonpath={range .items[*]}{.metadata.annotations.kcp\.dev/member}:{.status.containerStatuses[0].ready} {end}`
    return (await this.as(space, 'get', 'pods', '-l', `app=${app}`, '-o', columns)).trim() === `${member}:true`
  }

  async readyIn(space: string, app: string, member: string): Promise<void> {
    await waitFor(() => this.isReadyIn(space, app, member), {
      what: `"${app}" to be ready in ${member}`,
      deadlineMs: 180_000,
      intervalMs: 500,
    })
  }

  /** Moves a workload with volumes, and resolves when it is ready in the other member. */
  async move(space: string, app: string, member: string, options: MoveOptions = {}): Promise<Moved> {
    const { onLook, deadlineMs = 600_000 } = options
    const began = performance.now()
    const said: VolumeMoveStatus[] = []
    await this.as(space, 'annotate', '--overwrite', `statefulset/${app}`, `kcp.dev/clusters=${member}`)
    const look = async (): Promise<boolean> => {
      for (const move of await this.volumeMoves(space)) {
        const { status, spec } = move
        if (status === undefined || spec.to !== member) continue
        if (JSON.stringify(status) !== JSON.stringify(said.at(-1))) said.push(status)
        await onLook?.(move)
      }
      return await this.isReadyIn(space, app, member)
    }
    try {
      await waitFor(look, { what: `"${app}" to be ready in ${member}`, deadlineMs, intervalMs: 300 })
    } catch (error) {
      const { stdout } = await kubectl(this.kubeconfig, ['-n', space, 'get', 'all,pvc,events', '-o', 'wide'])
      throw new Error(`${String(error)}\n${JSON.stringify(said.slice(-3), null, 1)}\n${stdout}`, { cause: error })
    }
    return { seconds: (performance.now() - began) / 1000, said }
  }

  /** Compares the rows that the client of PostgreSQL noted with those in the database. `since`: seconds of the epoch. */
  async checkRows(space: string, since: number): Promise<Checked> {
    const command = ['python3', '/scripts/check.py', String(since)]
    return JSON.parse(await this.as(space, 'exec', 'deploy/client', '--', ...command)) as Checked
  }

  /** PostgreSQL `pg` with a client that writes and notes each acknowledged row, in a namespace of their own. */
  async beginPostgres(space: string): Promise<void> {
    await this.begin(space, configMap('scripts', ['client.py', 'check.py']), ...postgres(), client())
    await this.readyIn(space, 'pg', 'east')
    await this.readyIn(space, 'client', 'east')
    await this.rowsAfter(space, 0)
  }

  /** Resolves when the client has 20 rows more acknowledged than now, so that a time without answer is over. */
  async rowsAfter(space: string, since: number): Promise<Checked> {
    let before: number | undefined
    const check = async (): Promise<Checked | undefined> => {
      const now = await this.checkRows(space, since)
      before ??= now.acknowledged
      return now.acknowledged >= before + 20 ? now : undefined
    }
    return await waitFor(check, { what: 'the client to go on', deadlineMs: 120_000, intervalMs: 1000 })
  }
}

/** Scripts of this folder. */
export function configMap(name: string, scripts: readonly string[]): Manifest {
  const read = (file: string): string => readFileSync(join(repositoryRoot, 'test/long/stateful', file), 'utf8')
  const data = Object.fromEntries(scripts.map((file) => [file, read(file)]))
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }
}

export interface StatefulOptions {
  readonly ready?: readonly string[]
  readonly grace?: number
  readonly block?: boolean
  readonly pod?: Manifest
  readonly container?: Manifest
  readonly scripts?: boolean
}

/** A StatefulSet with one pod and one volume, at /data or as device /dev/data; other scripts are at /scripts. */
export function stateful(app: string, command: readonly string[], options: StatefulOptions = {}): Manifest {
  const { ready, grace = 10, block = false, pod = {}, container = {}, scripts = !block } = options
  const at = block ? { volumeDevices: [{ name: 'data', devicePath: '/dev/data' }] } : {}
  const mounts = [
    ...(block ? [] : [{ name: 'data', mountPath: '/data' }]),
    ...(scripts ? [{ name: 'scripts', mountPath: '/scripts' }] : []),
  ]
  const main = {
    ...{ name: 'main', image, command, volumeMounts: mounts, ...at },
    ...(ready && { readinessProbe: { exec: { command: ready }, periodSeconds: 1, timeoutSeconds: 5 } }),
    ...container,
  }
  return {
    ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: app } },
    spec: {
      ...{ serviceName: app, replicas: 1, selector: { matchLabels: { app } } },
      template: {
        metadata: { labels: { app } },
        spec: {
          ...{ terminationGracePeriodSeconds: grace, containers: [main], ...pod },
          ...(scripts && { volumes: [{ name: 'scripts', configMap: { name: 'scripts' } }] }),
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: {
            ...{ accessModes: ['ReadWriteOnce'], storageClassName: storageClasses.late },
            ...(block && { volumeMode: 'Block' }),
            resources: { requests: { storage: block ? '32Mi' : '2Gi' } },
          },
        },
      ],
    },
  }
}

/** Not as root, as usual for PostgreSQL. The signal of the kubelet would let it wait for its clients. */
function postgres(): Manifest[] {
  const script = [
    `export PATH=${postgresPrograms}:$PATH`,
    'if [ ! -f /data/pg/PG_VERSION ]; then',
    '  rm -rf /data/new; initdb -D /data/new -U postgres --auth=trust --no-locale -E UTF8 > /dev/null',
    "  echo 'host all all all trust' >> /data/new/pg_hba.conf; mv /data/new /data/pg",
    'fi',
    'chmod 0700 /data/pg',
    "exec postgres -D /data/pg -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB",
  ].join('\n')
  const labels = { app: 'pg' }
  return [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'pg' } },
      spec: { selector: labels, ports: [{ port: 5432 }] },
    },
    stateful('pg', ['bash', '-ec', script], {
      ready: [`${postgresPrograms}/pg_isready`, '-h', '127.0.0.1'],
      grace: 30,
      scripts: false,
      pod: { securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 } },
      container: { lifecycle: { preStop: { exec: { command: ['bash', '-c', 'kill -INT 1'] } } } },
    }),
  ]
}

/** A client of the database that stays in the first member. */
function client(): Manifest {
  const labels = { app: 'client' }
  const main = {
    ...{ name: 'main', image, command: ['python3', '/scripts/client.py'] },
    volumeMounts: [{ name: 'scripts', mountPath: '/scripts' }],
  }
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'client', annotations: { 'kcp.dev/clusters': 'east' } },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [main],
          volumes: [{ name: 'scripts', configMap: { name: 'scripts' } }],
        },
      },
    },
  }
}
