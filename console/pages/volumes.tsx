// The moves of volumes: how far each is, what it waits for, and what will not be kept. For admins of the installation.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import type { Condition } from '#apimachinery/meta/index.ts'
import { volumeConsentAnnotation, type VolumeMove } from '#crds/index.ts'
import { durationText } from '#console/model/age.ts'
import { bytesText } from '#console/model/bytes.ts'
import type { Tone } from '#console/model/tone.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { objectPath, type ObjectRef } from '#console/kube/paths.ts'
import { messageOf, request } from '#console/kube/request.ts'
import {
  Age,
  Badge,
  Conditions,
  Dialog,
  Facts,
  Link,
  Meter,
  Notice,
  Plain,
  Plot,
  StateNotice,
} from '#console/parts/common.tsx'
import { useLiveObjects } from '#console/state/live-objects.ts'
import { session } from '#console/state/session.ts'
import { text } from '#console/text.ts'

const t = text.volumes

export function VolumesPage({ move }: { readonly move?: string | undefined }): JSX.Element {
  const home = session.value?.home
  if (home === undefined) return <Notice kind="info">{t.forAdmins}</Notice>
  return <Volumes home={home} name={move} />
}

function Volumes({ home, name }: { readonly home: string; readonly name: string | undefined }): JSX.Element {
  const live = useLiveObjects<VolumeMove>(`${home}/apis/kcp.dev/v1alpha1/volumemoves`, 'VolumeMove')
  const { objects, state } = live.value
  const one = objects.find(({ metadata }) => metadata.name === name)
  return (
    <section class="page">
      <div class="toolbar">
        <h1>{t.title}</h1>
        <span class="count" role="status">
          {state.kind === 'live' ? t.count(objects.length) : text.table.listing}
        </span>
      </div>
      <StateNotice state={state} />
      {state.kind === 'live' && objects.length === 0 ? <Notice kind="info">{t.none}</Notice> : null}
      {name !== undefined && one === undefined && state.kind === 'live' ? (
        <Notice kind="wait">{t.unknown(name)}</Notice>
      ) : null}
      {one === undefined ? <List moves={objects} /> : <One move={one} />}
    </section>
  )
}

function List({ moves }: { readonly moves: readonly VolumeMove[] }): JSX.Element | null {
  if (moves.length === 0) return null
  return (
    <Plot head={[t.claim, t.way, t.fromTo, t.phase, t.says, t.since]}>
      {moves.map((move) => {
        const { metadata, spec } = move
        return (
          <tr key={metadata.name}>
            <td>
              <Link to={{ page: 'volumes', move: metadata.name }}>{claimText(move)}</Link>
            </td>
            <td>
              <Plain>{spec.way}</Plain>
            </td>
            <td>
              <Plain>{fromTo(move)}</Plain>
            </td>
            <td>
              <Badge tone={toneOfMove(move)}>{move.status?.phase ?? 'Preparing'}</Badge>
            </td>
            <td class="wrap">
              <Plain>{saysOf(move)}</Plain>
            </td>
            <td>
              <Age since={metadata.creationTimestamp} />
            </td>
          </tr>
        )
      })}
    </Plot>
  )
}

function One({ move }: { readonly move: VolumeMove }): JSX.Element {
  const { spec, status = {} } = move
  const { bytes, doneBytes, notKept = [], conditions = [] } = status
  const tone = toneOfMove(move)
  return (
    <>
      <h2>
        <Plain>{claimText(move)}</Plain>
      </h2>
      <Notice kind={tone === 'plain' ? 'info' : tone}>
        <Plain>{saysOf(move)}</Plain>
      </Notice>
      {bytes !== undefined && bytes > 0 && doneBytes !== undefined ? (
        <Meter label={t.round(bytesText(doneBytes), bytesText(bytes))} used={doneBytes} of={bytes} />
      ) : null}
      <Facts facts={factsOf(move)} />
      <Link to={{ page: 'object', object: claimOf(move), tab: 'overview' }}>{t.openClaim}</Link>
      {needsConsent(move) ? <Consent move={move} /> : null}
      {mayBeCancelled(move) ? (
        <p>
          {t.cancel(spec.from)} <code>{cancelCommand(move)}</code>
        </p>
      ) : null}
      <Conditions conditions={conditions} />
      {spec.way === 'Copy' || spec.way === 'Replicate' ? <NotKept entries={notKept} /> : null}
    </>
  )
}

function NotKept({ entries }: { readonly entries: readonly string[] }): JSX.Element {
  return (
    <>
      <h2>{t.notKept}</h2>
      {entries.length === 0 ? (
        <Notice kind="info">{t.allKept}</Notice>
      ) : (
        <ul>
          {entries.map((entry) => (
            <li key={entry}>
              <Plain>{entry}</Plain>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

/** The consent to the time without the application, in the name of the tenant. */
function Consent({ move }: { readonly move: VolumeMove }): JSX.Element {
  const isOpen = useSignal(false)
  const said = useSignal<{ readonly kind: 'good' | 'bad'; readonly text: string } | undefined>(undefined)
  const { claim, to } = move.spec
  const agree = async (): Promise<void> => {
    isOpen.value = false
    try {
      await request(objectPath(claimOf(move)), {
        method: 'PATCH',
        contentType: 'application/merge-patch+json',
        query: { fieldManager: 'kcp-console' },
        body: JSON.stringify({ metadata: { annotations: { [volumeConsentAnnotation]: to } } }),
      })
      said.value = { kind: 'good', text: t.agreed }
    } catch (caught) {
      said.value = { kind: 'bad', text: messageOf(caught) }
    }
  }
  return (
    <div class="actions">
      <button type="button" onClick={() => (isOpen.value = true)}>
        {t.agree}
      </button>
      {said.value === undefined ? null : <Notice kind={said.value.kind}>{visibleText(said.value.text)}</Notice>}
      {isOpen.value ? (
        <Dialog title={t.agreeTitle(claim)} close={() => (isOpen.value = false)}>
          <Notice kind="wait">{t.agreeHint(downtimeText(move), to)}</Notice>
          <div class="actions">
            <button type="button" class="danger" onClick={() => void agree()}>
              {t.agreeNow}
            </button>
            <button type="button" onClick={() => (isOpen.value = false)}>
              {text.common.cancel}
            </button>
          </div>
        </Dialog>
      ) : null}
    </div>
  )
}

function factsOf(move: VolumeMove): (readonly [string, JSX.Element])[] {
  const { spec, status = {} } = move
  const {
    bytes,
    entries,
    rate = 0,
    doneBytes = 0,
    rounds,
    sentBytes,
    lastRound,
    connection,
    lostAfter,
    volumeName,
  } = status
  const leftSeconds = rate > 0 && bytes !== undefined ? Math.max(0, bytes - doneBytes) / rate : undefined
  const found: (readonly [string, string | undefined])[] = [
    [t.fromTo, fromTo(move)],
    [t.way, spec.way],
    [t.phase, status.phase ?? 'Preparing'],
    [t.size, bytes === undefined ? undefined : t.sizeOf(bytesText(bytes), entries)],
    [t.rate, rate > 0 ? t.perSecond(bytesText(rate)) : undefined],
    [t.left, leftSeconds === undefined ? undefined : durationText(leftSeconds)],
    [t.rounds, rounds === undefined ? undefined : String(rounds)],
    [t.sent, sentBytes === undefined ? undefined : bytesText(sentBytes)],
    [t.connection, connection && `${connection.way}: ${connection.message}`],
    [
      t.lastRound,
      lastRound && t.roundOf(lastRound.completionTime, Math.ceil(lastRound.seconds), bytesText(lastRound.changedBytes)),
    ],
    [t.downtime, downtimeText(move)],
    [t.lostAfter, lostAfter],
    [t.volume, volumeName],
    [t.retain, durationText(spec.retainSeconds)],
  ]
  return found.flatMap(([name, value]) => (value === undefined ? [] : [[name, <Plain>{value}</Plain>] as const]))
}

function progressing({ status }: VolumeMove): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === 'Progressing')
}

function saysOf(move: VolumeMove): string {
  const waits = progressing(move)
  return waits?.status === 'False' ? `${waits.reason}: ${waits.message}` : (move.status?.summary ?? t.begins)
}

function toneOfMove(move: VolumeMove): Tone {
  const phase = move.status?.phase
  if (phase === 'Moved') return 'good'
  if (phase === 'Cancelled') return 'plain'
  const waits = progressing(move)
  const isPatient = waits?.reason === 'Queued' || waits?.reason === 'ConsentRequired'
  return waits?.status === 'False' && !isPatient ? 'bad' : 'wait'
}

function needsConsent({ spec, status }: VolumeMove): boolean {
  const phase = status?.phase ?? 'Preparing'
  return spec.requireConsent === true && (phase === 'Preparing' || phase === 'Copying')
}

function mayBeCancelled({ status }: VolumeMove): boolean {
  return !['Binding', 'Moved', 'Cancelled'].includes(status?.phase ?? 'Preparing')
}

function cancelCommand({ spec: { logicalCluster, namespace, from } }: VolumeMove): string {
  return visibleText(`kcp move namespace/${namespace} -c ${logicalCluster} --to ${from}`)
}

function downtimeText({ status }: VolumeMove): string | undefined {
  const seconds = status?.expectedDowntimeSeconds
  return seconds === undefined ? undefined : t.seconds(seconds)
}

function claimOf({ spec: { logicalCluster, namespace, claim } }: VolumeMove): ObjectRef {
  const resource = { group: '', version: 'v1', resource: 'persistentvolumeclaims' }
  return { ...resource, cluster: logicalCluster, namespace, name: claim }
}

function claimText({ spec: { logicalCluster, namespace, claim } }: VolumeMove): string {
  return `${logicalCluster} / ${namespace} / ${claim}`
}

function fromTo({ spec: { from, to } }: VolumeMove): string {
  return `${from} → ${to}`
}
