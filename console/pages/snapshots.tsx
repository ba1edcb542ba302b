// Snapshots of logical clusters, where they are kept and by which schedule they are made. For admins of the installation.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type {
  LogicalClusterSnapshot,
  SnapshotPhase,
  SnapshotRetention,
  SnapshotSchedule,
  SnapshotStore,
} from '#crds/index.ts'
import type { Condition } from '#apimachinery/meta/index.ts'
import type { FollowState } from '#console/kube/follow.ts'
import { clusterPath } from '#console/kube/paths.ts'
import { messageOf, request } from '#console/kube/request.ts'
import { bytesText } from '#console/model/bytes.ts'
import { conditionTone, type Tone } from '#console/model/tone.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Age, Badge, Command, Dialog, Notice, Plain, Plot, StateNotice } from '#console/parts/common.tsx'
import { clusterNames, readClusters } from '#console/state/clusters.ts'
import { useLiveObjects } from '#console/state/live-objects.ts'
import { onlyCluster, session } from '#console/state/session.ts'
import { text } from '#console/text.ts'

const t = text.snapshots
const group = 'apis/kcp.dev/v1alpha1'
/** Snapshots that are drawn: the newest ones. */
const maxShown = 300

export function SnapshotsPage(): JSX.Element {
  const home = session.value?.home
  if (home?.startsWith(clusterPath('')) === true) return <Snapshots home={home} />
  const own = onlyCluster()
  return (
    <section class="page">
      <h1>{t.title}</h1>
      <Notice kind="info">{home === undefined ? t.forAdmins : t.inHost}</Notice>
      {own === '' ? null : <Command>{`kubectl get --raw /snapshot > ${own}.kcp.tar.zst`}</Command>}
    </section>
  )
}

function Snapshots({ home }: { readonly home: string }): JSX.Element {
  const snapshots = useLiveObjects<LogicalClusterSnapshot>(
    `${home}/${group}/logicalclustersnapshots`,
    'LogicalClusterSnapshot',
  )
  const stores = useLiveObjects<SnapshotStore>(`${home}/${group}/snapshotstores`, 'SnapshotStore')
  const schedules = useLiveObjects<SnapshotSchedule>(`${home}/${group}/snapshotschedules`, 'SnapshotSchedule')
  const isOpen = useSignal(false)
  const { objects, state } = snapshots.value
  const newest = objects.toSorted((a, b) => (startOf(a) < startOf(b) ? 1 : -1))
  return (
    <section class="page">
      <div class="toolbar">
        <h1>{t.title}</h1>
        <span class="count" role="status">
          {state.kind === 'live' ? t.count(objects.length) : text.table.listing}
        </span>
        <button type="button" disabled={stores.value.objects.length === 0} onClick={() => (isOpen.value = true)}>
          {t.create}
        </button>
      </div>
      <StateNotice state={state} />
      {state.kind === 'live' && objects.length === 0 ? <Notice kind="info">{t.none}</Notice> : null}
      <List home={home} snapshots={newest.slice(0, maxShown)} />
      {newest.length > maxShown ? <p class="quiet">{t.more(newest.length - maxShown)}</p> : null}
      <h2>{t.schedules}</h2>
      <Schedules schedules={schedules.value.objects} state={schedules.value.state} />
      <h2>{t.stores}</h2>
      <Stores stores={stores.value.objects} state={stores.value.state} />
      {isOpen.value ? (
        <Create
          home={home}
          stores={stores.value.objects.map(({ metadata }) => metadata.name)}
          close={() => (isOpen.value = false)}
        />
      ) : null}
    </section>
  )
}

function startOf({ metadata, status }: LogicalClusterSnapshot): string {
  return status?.startTime ?? metadata.creationTimestamp ?? ''
}

const tones: Readonly<Record<SnapshotPhase, Tone>> = {
  Waiting: 'wait',
  InProgress: 'wait',
  Completed: 'good',
  Failed: 'bad',
}

function List({
  home,
  snapshots,
}: {
  readonly home: string
  readonly snapshots: readonly LogicalClusterSnapshot[]
}): JSX.Element | null {
  const chosen = useSignal<LogicalClusterSnapshot | undefined>(undefined)
  if (snapshots.length === 0) return null
  return (
    <>
      <Plot head={[t.name, t.cluster, t.store, t.phase, t.objects, t.size, t.taken, t.says, '']}>
        {snapshots.map((snapshot) => {
          const { metadata, spec, status = {} } = snapshot
          const { phase = 'Waiting', objects, bytes, encrypted } = status
          return (
            <tr key={metadata.name}>
              <td>
                <Plain>{metadata.name}</Plain>
              </td>
              <td>
                <Plain>{spec.logicalCluster}</Plain>
              </td>
              <td>
                <Plain>{spec.store}</Plain>
              </td>
              <td>
                <Badge tone={tones[phase]}>{phase}</Badge>
              </td>
              <td>{objects?.toLocaleString('en') ?? ''}</td>
              <td>{bytes === undefined ? '' : `${bytesText(bytes)}${encrypted === true ? ` ${t.encrypted}` : ''}`}</td>
              <td>
                <Age since={startOf(snapshot)} />
              </td>
              <td class="wrap">
                <Plain>{saysOf(snapshot)}</Plain>
              </td>
              <td>
                {phase === 'Completed' ? (
                  <button type="button" onClick={() => (chosen.value = snapshot)}>
                    {t.use}
                  </button>
                ) : null}
              </td>
            </tr>
          )
        })}
      </Plot>
      {chosen.value === undefined ? null : (
        <Use home={home} snapshot={chosen.value} close={() => (chosen.value = undefined)} />
      )}
    </>
  )
}

/** The condition that is not as it should be. */
function saysOf({ status }: LogicalClusterSnapshot): string {
  const conditions = status?.conditions ?? []
  const found =
    conditions.find(({ type, status: is }) => type === 'Failed' && is === 'True') ??
    conditions.find(({ type, status: is }) => type !== 'Failed' && is === 'False')
  return found === undefined ? '' : `${found.reason}: ${found.message}`
}

interface Sent {
  readonly kind: 'good' | 'bad'
  readonly text: string
}

/** Sends an object, and says how it went. */
function useCreate(): {
  readonly said: Sent | undefined
  readonly create: (path: string, body: object, done: string) => void
} {
  const said = useSignal<Sent | undefined>(undefined)
  const create = (path: string, body: object, done: string): void => {
    said.value = undefined
    void request(path, { method: 'POST', body: JSON.stringify(body) }).then(
      () => (said.value = { kind: 'good', text: done }),
      (error: unknown) => (said.value = { kind: 'bad', text: messageOf(error) }),
    )
  }
  return { said: said.value, create }
}

function Said({ said }: { readonly said: Sent | undefined }): JSX.Element | null {
  return said === undefined ? null : <Notice kind={said.kind}>{visibleText(said.text)}</Notice>
}

/** Makes a LogicalClusterSnapshot. */
function Create({
  home,
  stores,
  close,
}: {
  readonly home: string
  readonly stores: readonly string[]
  readonly close: () => void
}): JSX.Element {
  useEffect(() => void readClusters().catch(() => undefined), [])
  const names = clusterNames.value.filter((name) => name !== 'root')
  const [cluster, store, name] = [useSignal(''), useSignal(stores[0] ?? ''), useSignal('')]
  const { said, create } = useCreate()
  const submit = (event: Event): void => {
    event.preventDefault()
    const metadata = name.value === '' ? { generateName: `${cluster.value}-` } : { name: name.value }
    create(
      `${home}/${group}/logicalclustersnapshots`,
      {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalClusterSnapshot', metadata },
        spec: { logicalCluster: cluster.value, store: store.value },
      },
      t.created,
    )
  }
  return (
    <Dialog title={t.createTitle} close={close}>
      <form class="fields" onSubmit={submit}>
        <label>
          {t.cluster}
          <input
            list="snapshot-clusters"
            required
            value={cluster.value}
            onInput={(event) => (cluster.value = event.currentTarget.value)}
          />
        </label>
        <datalist id="snapshot-clusters">
          {names.slice(0, maxShown).map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <label>
          {t.store}
          <select value={store.value} onChange={(event) => (store.value = event.currentTarget.value)}>
            {stores.map((one) => (
              <option key={one} value={one}>
                {visibleText(one)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t.nameOrNone}
          <input value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="submit">{t.createNow}</button>
        </div>
      </form>
      <Said said={said} />
    </Dialog>
  )
}

/** Restores a snapshot under another name, and says how it is verified and put back. */
function Use({
  home,
  snapshot,
  close,
}: {
  readonly home: string
  readonly snapshot: LogicalClusterSnapshot
  readonly close: () => void
}): JSX.Element {
  const { name: from } = snapshot.metadata
  const name = useSignal('')
  const { said, create } = useCreate()
  const submit = (event: Event): void => {
    event.preventDefault()
    create(
      `${home}/${group}/logicalclusters`,
      {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: name.value } },
        spec: { source: { snapshot: { name: from } } },
      },
      t.restored(name.value),
    )
  }
  return (
    <Dialog title={t.useTitle(visibleText(from))} close={close}>
      <form class="fields" onSubmit={submit}>
        <label>
          {t.newName}
          <input required value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="submit">{t.restoreNow}</button>
        </div>
      </form>
      <Said said={said} />
      <p>{t.verifyHint}</p>
      <Command>{`kcp snapshot verify ${from}`}</Command>
      <p>{t.backHint(visibleText(snapshot.spec.logicalCluster))}</p>
      <Command>{`kcp snapshot restore ${from} --into ${snapshot.spec.logicalCluster}`}</Command>
    </Dialog>
  )
}

function Schedules({
  schedules,
  state,
}: {
  readonly schedules: readonly SnapshotSchedule[]
  readonly state: FollowState
}): JSX.Element | null {
  if (state.kind !== 'live') return <StateNotice state={state} />
  if (schedules.length === 0) return <Notice kind="info">{t.noSchedules}</Notice>
  return (
    <Plot head={[t.name, t.times, t.store, t.keeps, t.last, t.next, t.state]}>
      {schedules.map(({ metadata, spec, status = {} }) => (
        <tr key={metadata.name}>
          <td>
            <Plain>{metadata.name}</Plain>
          </td>
          <td>
            <Plain>{`${spec.schedule} (${spec.timeZone ?? 'UTC'})`}</Plain>
          </td>
          <td>
            <Plain>{spec.store}</Plain>
          </td>
          <td>
            <Plain>{keepsText(spec.retention)}</Plain>
          </td>
          <td>
            <Age since={status.lastScheduleTime} />
          </td>
          <td>
            <Plain>{spec.suspend === true ? t.suspended : (status.nextScheduleTime ?? '')}</Plain>
          </td>
          <td>
            <First conditions={status.conditions} />
          </td>
        </tr>
      ))}
    </Plot>
  )
}

function keepsText(retention: SnapshotRetention = { last: 7 }): string {
  return Object.entries(retention)
    .map(([rule, count]) => `${count} ${rule}`)
    .join(', ')
}

function First({ conditions = [] }: { readonly conditions?: readonly Condition[] | undefined }): JSX.Element | null {
  const [first] = conditions
  if (first === undefined) return null
  return (
    <>
      <Badge tone={conditionTone(first)}>{first.reason}</Badge>{' '}
      <Plain>{first.status === 'True' ? '' : first.message}</Plain>
    </>
  )
}

function Stores({
  stores,
  state,
}: {
  readonly stores: readonly SnapshotStore[]
  readonly state: FollowState
}): JSX.Element | null {
  if (state.kind !== 'live') return <StateNotice state={state} />
  if (stores.length === 0) return <Notice kind="info">{t.noStores}</Notice>
  return (
    <Plot head={[t.name, t.place, t.encryption, t.state]}>
      {stores.map(({ metadata, spec, status }) => (
        <tr key={metadata.name}>
          <td>
            <Plain>{metadata.name}</Plain>
          </td>
          <td>
            <Plain>{placeOf(spec)}</Plain>
          </td>
          <td>{spec.encryption === undefined ? t.plain : t.encrypted}</td>
          <td>
            <First conditions={status?.conditions} />
          </td>
        </tr>
      ))}
    </Plot>
  )
}

function placeOf({ file, s3 }: SnapshotStore['spec']): string {
  if (file !== undefined) return t.folder(file.path)
  return s3 === undefined ? '' : `s3://${s3.bucket}/${s3.prefix ?? ''}`
}
