import { expect } from 'chai'
import { usedField } from './used-field.ts'

const object = {
  spec: { containers: [{ name: 'a' }, { name: 'b', rules: [1] }], limits: { cpu: { claim: 'x' } }, off: null },
}

describe('the field of an object that one of the patterns names', () => {
  for (const { title, patterns, expected } of [
    {
      title: 'is found in an item of a list',
      patterns: ['spec.containers[*].rules'],
      expected: 'spec.containers[1].rules',
    },
    { title: 'is found in a value of a map', patterns: ['spec.limits{*}.claim'], expected: 'spec.limits[cpu].claim' },
    {
      title: 'is the first one',
      patterns: ['spec.none', 'spec.containers', 'spec.limits'],
      expected: 'spec.containers',
    },
    { title: 'is not one that is absent', patterns: ['spec.containers[*].env[*].file', 'kind'], expected: undefined },
    { title: 'is not one that is null', patterns: ['spec.off'], expected: undefined },
  ]) {
    it(title, () => expect(usedField(object, patterns)).to.equal(expected))
  }
})
