/**
 * Plants a fault: node --import plant.mjs runs a program with one module's text changed. EDUBBA_PLANTED_FAULT is the
 * fault as JSON (faults.ts).
 */
import { register } from 'node:module';

register('./plant-hooks.mjs', import.meta.url, { data: JSON.parse(process.env.EDUBBA_PLANTED_FAULT) });
