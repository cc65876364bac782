--# Control characters and unicode spaces between tokens.
SELECT 1, 2
-- cSELECT 1
SELECT 1 -- c, 2
SELECT1
SELECT 1
﻿SELECT 1
SELECT 
SELECT ab
SELECT “x”
SELECT ‘x’ FROM t
--{{
SELECT 'a'
'b'
--}}
--{{
SELECT 'a'
	'b', 'c' -- x'd'
--}}
