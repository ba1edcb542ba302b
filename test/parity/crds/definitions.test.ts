// CustomResourceDefinitions and custom resources, said to a real kube-apiserver and to a logical cluster.
import { compareRows } from '../support/compare-rows.ts'
import { definitionRows } from './definitions.ts'
import { knownDefinitionDifferences, knownLifeDifferences, knownObjectDifferences } from './known-differences.ts'
import { lifeRows } from './life.ts'
import { objectRows } from './objects.ts'

describe('custom resources as a real server has them', function () {
  this.timeout(180_000) // both servers start first, and the rows that mostly wait run
  compareRows([...definitionRows, ...objectRows, ...lifeRows], {
    name: 'crds',
    known: { ...knownDefinitionDifferences, ...knownObjectDifferences, ...knownLifeDifferences },
    // A real server waits two seconds before it creates the first object of a new definition.
    ahead: new Set(lifeRows),
  })
})
