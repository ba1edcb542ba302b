// CustomResourceDefinitions and custom resources, said to a real kube-apiserver and to a logical cluster. The rows of
// life.ts are not run here yet: the first of them did not end when they were last run after the others.
import { compareRows } from '../support/compare-rows.ts'
import { definitionRows } from './definitions.ts'
import { knownDefinitionDifferences, knownObjectDifferences } from './known-differences.ts'
import { objectRows } from './objects.ts'

describe('custom resources as a real server has them', function () {
  this.timeout(60_000)
  compareRows([...definitionRows, ...objectRows], {
    name: 'crds',
    known: { ...knownDefinitionDifferences, ...knownObjectDifferences },
  })
})
