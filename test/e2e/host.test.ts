import { installOnHost } from './installation.ts'
import { endLabAfterAll } from './lab.ts'
import { defineStory } from './story.ts'

endLabAfterAll()
defineStory("with a host: stock kubectl through the host's API endpoint", installOnHost)
