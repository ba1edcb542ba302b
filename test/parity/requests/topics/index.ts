// All topics, what most clients meet first at the top.
import type { Topic } from '../row.ts'
import { creates } from './creates.ts'
import { deletes } from './deletes.ts'
import { fieldValidation } from './field-validation.ts'
import { lists } from './lists.ts'
import { negotiation } from './negotiation.ts'
import { patches } from './patches.ts'
import { paths } from './paths.ts'
import { updates } from './updates.ts'
import { watches } from './watches.ts'

export const topics: readonly Topic[] = [
  lists,
  creates,
  updates,
  patches,
  deletes,
  watches,
  negotiation,
  fieldValidation,
  paths,
]
