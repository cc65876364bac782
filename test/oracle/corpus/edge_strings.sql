--# Strings that go on after a new line.
--{{
SELECT U&'\AC1'
'B'
--}}
--{{
SELECT U&'\D83D'
'\DE00'
--}}
--{{
SELECT E'\uD83D'
'\uDE00'
--}}
--{{
SELECT E'\x4'
'1'
--}}
--{{
SELECT E'\u00'
'41'
--}}
--{{
SELECT E'\'
'a'
--}}
--{{
SELECT E'a'
'b\'c'
--}}
--{{
SELECT E'a\
'
'b'
--}}
--{{
SELECT 'a\'
'b'
--}}
--{{
SELECT U&'a' UESCAPE
'!'
--}}
--{{
SELECT U&'a'
'!0062' UESCAPE '!'
--}}
--{{
SELECT U&'a!' 
 '0062' UESCAPE '!'
--}}
--{{
SELECT U&'a' UESCAPE '!' 
 '?'
--}}
--{{
SELECT U&"a!0"
"062" UESCAPE '!'
--}}
--{{
SELECT B'1'
'x'
--}}
--{{
SELECT X'1'
'z'
--}}
--{{
SELECT N'a'
'b'
'c'
--}}
--{{
SELECT 'a'


   	'b'
--}}
--{{
SELECT 'a'
--
--
'b'
--}}
--{{
SELECT 'a' --
'b' AS c
--}}
--{{
SELECT 'a''b'
--}}
--{{
SELECT date '2020'
'-01-01'
--}}
--{{
SELECT $$a$$
'b'
--}}
--{{
SELECT 'a'
$$b$$
--}}
--{{
SELECT 'a'
N'b'
--}}
--{{
SELECT interval '1'
' day' day
--}}
--{{
SELECT f('a'
'b', 'c'
, 'd')
--}}
--{{
SELECT 'a'
'b' 'c'
--}}
--{{
SELECT '/*'
'*/'
--}}
--{{
SELECT 'it''s'
'''x'''
--}}
--{{
SELECT E'\xC3'
'\xA9'
--}}
