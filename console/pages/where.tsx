// Where an object runs, and why: its copies, condition Placed, the history of its moves, and all filters and scores.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { memberAnnotation, workloadKinds } from '#crds/index.ts'
import { conditionsOf, type AnyObject } from '#console/kube/objects.ts'
import type { ObjectRef } from '#console/kube/paths.ts'
import { messageOf } from '#console/kube/request.ts'
import { copiesOf, historyOf } from '#console/model/moves.ts'
import { visibleText } from '#console/model/visible-text.ts'
import { Age, Badge, Command, Conditions, Link, Notice, Plain, Plot } from '#console/parts/common.tsx'
import { session } from '#console/state/session.ts'
import { text } from '#console/text.ts'
import type { WorkloadExplanation } from '#operator/placement/explain-workload.ts'
import { CopyView } from './moves.tsx'

const t = text.where

interface WhereProps {
  readonly target: ObjectRef
  readonly object: AnyObject
}

export function WhereTab({ target, object }: WhereProps): JSX.Element {
  const copies = copiesOf(object)
  const member = object.metadata.annotations?.[memberAnnotation]
  const conditions = conditionsOf(object).filter(({ type }) => ['Placed', 'Synced', 'Scheduled'].includes(type))
  const history = historyOf(object)
  const isWorkload = workloadKinds.some(({ kind }) => kind === object.kind)
  return (
    <div class="content">
      {member === undefined ? null : (
        <p>
          {t.madeIn} <Link to={{ page: 'members', member }}>{member}</Link>
        </p>
      )}
      {copies.length === 0 && member === undefined ? (
        <Notice kind="info">{isWorkload ? t.nowhere : t.notPlaced}</Notice>
      ) : null}
      {copies.map((copy) => (
        <CopyView key={copy.member} copy={copy} />
      ))}
      {conditions.length === 0 ? null : <Conditions conditions={conditions} />}
      <h2>{t.history}</h2>
      {history.length === 0 ? <p class="quiet">{t.noHistory}</p> : null}
      {history.length === 0 ? null : (
        <Plot head={[t.when, t.from, t.to, t.cause, t.message]}>
          {history.map(({ time, from, to, cause, message }, index) => (
            <tr key={`${index} ${time}`}>
              <td>
                <Age since={time} />
              </td>
              <td>{visibleText(from.join(', '))}</td>
              <td>{visibleText(to.join(', '))}</td>
              <td>
                <Badge tone="plain">{cause}</Badge>
              </td>
              <td class="wrap">
                <Plain>{message}</Plain>
              </td>
            </tr>
          ))}
        </Plot>
      )}
      {isWorkload ? <Explanation target={target} object={object} /> : null}
    </div>
  )
}

/** The words of `kcp placement explain`. */
function Explanation({ target, object }: WhereProps): JSX.Element {
  const found = useSignal<WorkloadExplanation | undefined>(undefined)
  const state = useSignal<'idle' | 'busy' | { readonly error: string }>('idle')
  const { kind = '' } = object
  const { cluster, namespace, name } = target
  const home = session.value?.home
  const explain = async (): Promise<void> => {
    if (home === undefined) return
    state.value = 'busy'
    try {
      const { explanationOf } = await import('#console/lazy/placement.ts')
      found.value = await explanationOf(home, { kind, cluster, namespace, name }, AbortSignal.timeout(60_000))
      state.value = found.value === undefined ? { error: t.unknownWorkload } : 'idle'
    } catch (error) {
      state.value = { error: messageOf(error) }
    }
  }
  return (
    <>
      <h2>{t.why}</h2>
      {home === undefined ? <p class="quiet">{t.adminsOnly}</p> : null}
      <Command>{`kcp placement explain ${kind.toLowerCase()}/${name} --cluster ${cluster} -n ${namespace}`}</Command>
      {home === undefined ? null : (
        <button type="button" disabled={state.value === 'busy'} onClick={() => void explain()}>
          {state.value === 'busy' ? t.computing : t.explain}
        </button>
      )}
      {typeof state.value === 'object' ? <Notice kind="bad">{visibleText(state.value.error)}</Notice> : null}
      {found.value === undefined ? null : <ExplanationView explanation={found.value} />}
    </>
  )
}

function ExplanationView({ explanation }: { readonly explanation: WorkloadExplanation }): JSX.Element {
  const { target, source, waits, failures, decision, balance, members } = explanation
  const asked = target.kind === 'members' ? target.names.join(', ') : target.kind
  const { wanted, held } = decision
  return (
    <>
      <ul class="lines">
        <li>{t.askedFor(asked, source)}</li>
        <li>{t.wanted(wanted.kind === 'members' ? wanted.names.join(', ') : wanted.kind)}</li>
        {waits.map((wait) => (
          <li key={wait}>{visibleText(wait)}</li>
        ))}
        {[...failures, ...held.map(({ reason, message }) => `${reason}: ${message}`)].map((problem) => (
          <li key={problem} class="bad">
            {visibleText(problem)}
          </li>
        ))}
        <li>{t.balance(balance)}</li>
      </ul>
      <Plot head={[t.member, t.verdict, t.refusals, t.scores]}>
        {members.map(({ cluster, chosen, current, refusals, scores }) => (
          <tr key={cluster}>
            <td>{cluster}</td>
            <td>
              {chosen ? <Badge tone="good">{t.chosen}</Badge> : null}{' '}
              {current ? <Badge tone="plain">{t.hasCopy}</Badge> : null}
            </td>
            <td class="wrap">
              {refusals.map(({ reason, message }) => (
                <div key={reason}>
                  <Badge tone="bad">{reason}</Badge> <Plain>{message}</Plain>
                </div>
              ))}
            </td>
            <td>{scores.map(({ name, value }) => `${name} ${value}`).join(', ')}</td>
          </tr>
        ))}
      </Plot>
    </>
  )
}
