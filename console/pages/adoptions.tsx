// The adoptions of running namespaces: what each waits for, and its plan by object. For admins of the installation.
import type { JSX } from 'preact'
import type { Condition } from '#apimachinery/meta/index.ts'
import type { Adoption, PlannedObject } from '#crds/index.ts'
import type { Tone } from '#console/model/tone.ts'
import { Age, Badge, Conditions, Facts, Link, Notice, Plain, Plot, StateNotice } from '#console/parts/common.tsx'
import { useLiveObjects } from '#console/state/live-objects.ts'
import { session } from '#console/state/session.ts'
import { text } from '#console/text.ts'

const t = text.adoptions

export function AdoptionsPage({ adoption }: { readonly adoption?: string | undefined }): JSX.Element {
  const home = session.value?.home
  if (home === undefined) return <Notice kind="info">{t.forAdmins}</Notice>
  return <Adoptions home={home} name={adoption} />
}

function Adoptions({ home, name }: { readonly home: string; readonly name: string | undefined }): JSX.Element {
  const live = useLiveObjects<Adoption>(`${home}/apis/kcp.dev/v1alpha1/adoptions`, 'Adoption')
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
        <Notice kind="bad">{t.unknown(name)}</Notice>
      ) : null}
      {one === undefined ? <List adoptions={objects} /> : <One adoption={one} />}
    </section>
  )
}

function List({ adoptions }: { readonly adoptions: readonly Adoption[] }): JSX.Element | null {
  if (adoptions.length === 0) return null
  return (
    <Plot head={[t.name, t.from, t.into, t.mode, t.phase, t.waits, t.since]}>
      {adoptions.map((adoption) => {
        const { name } = adoption.metadata
        const phase = phaseOf(adoption)
        return (
          <tr key={name}>
            <td>
              <Link to={{ page: 'adoptions', adoption: name }}>{name}</Link>
            </td>
            <td>
              <Plain>{fromText(adoption)}</Plain>
            </td>
            <td>
              <Plain>{intoText(adoption)}</Plain>
            </td>
            <td>
              <Plain>{adoption.spec.mode ?? 'Plan'}</Plain>
            </td>
            <td>
              <Badge tone={toneOfPhase(phase)}>{phase?.reason ?? t.notObserved}</Badge>
            </td>
            <td class="wrap">
              <Plain>{phase?.message ?? ''}</Plain>
            </td>
            <td>
              <Age since={phase?.lastTransitionTime} />
            </td>
          </tr>
        )
      })}
    </Plot>
  )
}

function One({ adoption }: { readonly adoption: Adoption }): JSX.Element {
  const { objects = [], findings = [], counts = [], conditions = [] } = adoption.status ?? {}
  const phase = phaseOf(adoption)
  const tone = toneOfPhase(phase)
  return (
    <>
      <h2>
        <Plain>{adoption.metadata.name}</Plain>
      </h2>
      <Facts
        facts={[
          [t.from, <Plain>{fromText(adoption)}</Plain>],
          [t.into, <Plain>{intoText(adoption)}</Plain>],
          [t.mode, <Plain>{adoption.spec.mode ?? 'Plan'}</Plain>],
          ...counts.map(({ action, objects: count }) => [action, String(count)] as const),
        ]}
      />
      {phase === undefined ? null : (
        <Notice kind={tone === 'plain' ? 'info' : tone}>
          <Plain>{phase.message}</Plain>
        </Notice>
      )}
      <Conditions conditions={conditions} />
      {findings.length === 0 ? null : (
        <>
          <h2>{t.findings}</h2>
          <Plot head={[t.about, t.why]}>
            {findings.map(({ about, message }) => (
              <tr key={`${about} ${message}`}>
                <td class="wrap">
                  <Plain>{about}</Plain>
                </td>
                <td class="wrap">
                  <Plain>{message}</Plain>
                </td>
              </tr>
            ))}
          </Plot>
        </>
      )}
      <h2>{t.plan(objects.length)}</h2>
      <Plan objects={objects} />
    </>
  )
}

function Plan({ objects }: { readonly objects: readonly PlannedObject[] }): JSX.Element {
  return (
    <Plot head={[t.action, t.object, t.owners, t.why]}>
      {objects.map(({ action, kind, name, message, owners = [] }) => (
        <tr key={`${kind}/${name}`}>
          <td>
            <Badge tone={action === 'Refuse' ? 'bad' : action === 'Keep' ? 'plain' : 'good'}>{action}</Badge>
          </td>
          <td>
            <Plain>{`${kind}/${name}`}</Plain>
          </td>
          <td class="wrap">
            <Plain>{owners.map(({ manager, fields, shared }) => t.owner(manager, shared, fields)).join(', ')}</Plain>
          </td>
          <td class="wrap">
            <Plain>{message ?? ''}</Plain>
          </td>
        </tr>
      ))}
    </Plot>
  )
}

function phaseOf({ status }: Adoption): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === 'Adopted')
}

/** What an admin has to do something about is bad; what goes on by itself waits. */
function toneOfPhase(phase: Condition | undefined): Tone {
  if (phase === undefined) return 'wait'
  if (phase.reason === 'CannotUndo' || phase.reason === 'Refused' || phase.reason === 'NotFound') return 'bad'
  if (phase.status === 'True') return 'good'
  return phase.reason === 'Undone' || phase.reason === 'NotAsked' ? 'plain' : 'wait'
}

function fromText({ spec: { member, namespace } }: Adoption): string {
  return `${member} / ${namespace}`
}

function intoText({ spec: { logicalCluster, namespace, targetNamespace } }: Adoption): string {
  return `${logicalCluster} / ${targetNamespace ?? namespace}`
}
