import { expect } from 'chai'
import { decide } from './collect-object.ts'
import type { Owner, OwnerState } from './garbage-owners.ts'

describe('the decision of garbage collection about an object', () => {
  const owner = (state: OwnerState, uid: string): Owner => ({
    reference: { apiVersion: 'v1', kind: 'ConfigMap', name: uid, uid },
    state,
  })
  for (const { title, states, finalizers = [], expected } of [
    { title: 'keeps it without owners', states: [], expected: 'keep' },
    { title: 'keeps it while all owners exist', states: ['solid', 'solid'], expected: 'keep' },
    {
      title: 'removes absent and waiting owners if another one exists',
      states: ['absent', 'solid', 'waiting'],
      expected: 'drop 0,2',
    },
    {
      title: 'does nothing for now if the kind of an owner is unknown',
      states: ['absent', 'unresolvable'],
      expected: 'retry',
    },
    {
      title: 'does nothing for now with one existing and one unknown owner',
      states: ['solid', 'unresolvable'],
      expected: 'retry',
    },
    {
      title: 'deletes it in the background when all owners are absent',
      states: ['absent', 'absent'],
      expected: 'delete Background',
    },
    {
      title: 'orphans its dependents if it has the finalizer orphan',
      states: ['absent'],
      finalizers: ['orphan'],
      expected: 'delete Orphan',
    },
    {
      title: 'deletes it in the foreground if it has the finalizer foregroundDeletion',
      states: ['absent'],
      finalizers: ['foregroundDeletion'],
      expected: 'delete Foreground',
    },
    {
      title: 'prefers orphan if it has both finalizers',
      states: ['absent'],
      finalizers: ['foregroundDeletion', 'orphan'],
      expected: 'delete Orphan',
    },
    {
      title: 'ignores finalizers of others',
      states: ['absent'],
      finalizers: ['example.com/x'],
      expected: 'delete Background',
    },
    {
      title: 'asks for the dependents first if an owner waits for them',
      states: ['waiting', 'absent'],
      expected: 'delete Background, Foreground if it has dependents',
    },
  ] satisfies { title: string; states: OwnerState[]; finalizers?: string[]; expected: string }[]) {
    it(title, () => {
      const decision = decide(
        states.map((state, i) => owner(state, String(i))),
        finalizers,
      )
      const told = (): string => {
        if (decision.do === 'dropOwners') return `drop ${decision.owners.map(({ reference }) => reference.uid).join()}`
        if (decision.do !== 'delete') return decision.do
        return `delete ${decision.policy}${decision.foregroundIfDependents ? ', Foreground if it has dependents' : ''}`
      }
      expect(told()).to.equal(expected)
    })
  }
})
